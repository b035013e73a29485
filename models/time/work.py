"""What a piece of a model costs one rank for one micro-batch, part by part.

A ``Work`` holds seconds of forward and backward under the names of ``PARTS``; works
add up. The weight-gradient share of the backward is kept apart for schedules that
run it apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]

#: Parts of a layer's time, as a breakdown shows them.
LAYER_PARTS = (
    "attention",
    "gemm",
    "experts",
    "elementwise",
    "recompute",
    "tp",
    "cp",
    "ep",
    "dp",
    "host",
)
#: Every part of a step, in the order they are shown; they sum to the step time.
PARTS = (*LAYER_PARTS, "head", "mtp", "p2p", "bubble", "optimizer", "step")

ZERO: Floats = np.zeros(1)


@dataclass(frozen=True)
class Work:
    """Seconds of one piece.

    Attributes
    ----------
    forward, backward
        By part; arrays over layouts that broadcast against each other.
    weight
        Weight gradients within ``backward``.
    """

    forward: dict[str, Floats] = field(default_factory=dict)
    backward: dict[str, Floats] = field(default_factory=dict)
    weight: Floats = field(default_factory=lambda: ZERO)

    def __add__(self, other: Work) -> Work:
        """Add part by part."""
        return Work(
            _added(self.forward, other.forward),
            _added(self.backward, other.backward),
            self.weight + other.weight,
        )

    def as_part(self, part: str) -> Work:
        """Show everything under one name."""
        if not self.forward:
            return self
        ahead, back = self.forward_time, self.backward_time
        return Work({part: ahead}, {part: back}, self.weight)

    @property
    def forward_time(self) -> Floats:
        """Seconds of the forward."""
        return _sum(self.forward)

    @property
    def backward_time(self) -> Floats:
        """Seconds of the backward."""
        return _sum(self.backward)


def _added(left: dict[str, Floats], right: dict[str, Floats]) -> dict[str, Floats]:
    merged = dict(left)
    for part, seconds in right.items():
        merged[part] = merged[part] + seconds if part in merged else seconds
    return merged


def _sum(parts: dict[str, Floats]) -> Floats:
    # In a fixed order, so that equal layouts get equal bits.
    total = ZERO
    for part in PARTS:
        if part in parts:
            total = total + parts[part]
    return total
