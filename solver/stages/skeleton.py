"""One skeleton with everything the choice of its stages depends on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...models.errors import InputError
from ...models.layout import SCHEDULES
from ...models.pipeline.bounds import BOUNDED
from .bytes import RankBytes
from .items import items_of, legal_codes, memory_model
from .times import StepTimes

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from ...models.layout import Layout
    from ...models.problem import Problem
    from ...models.profiles import Profile
    from .items import Item

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Skeleton:
    """A skeleton, the levels its layers may have, and their seconds and bytes.

    Attributes
    ----------
    problem, layout
        What is trained, and how it is cut; split and recompute choice of the layout
        do not matter.
    items
        Layers at their levels; levels that cost at least as much as another one in
        time and in every byte are left out.
    memory, times
        Peak bytes and step times.
    limit
        What a rank may use, in bytes.
    """

    problem: Problem
    layout: Layout
    items: tuple[Item, ...]
    memory: RankBytes
    times: StepTimes
    limit: int

    @property
    def chunks(self) -> int:
        """Chunks along the model."""
        return self.layout.pp * self.layout.vpp

    @cached_property
    def kinds(self) -> int:
        """Kinds of decoder layers; the next number stands for predictions."""
        return len(self.problem.architecture.kinds)

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the items of each kind, predictions last."""
        found: list[list[int]] = [[] for _ in range(self.kinds + 1)]
        for i, item in enumerate(self.items):
            found[item.kind].append(i)
        return tuple(tuple(f) for f in found)

    @cached_property
    def prefix(self) -> Ints:
        """Layers of each kind among the first ones, shape [layers + 1, kinds]."""
        kinds = np.array(self.problem.architecture.kind_of_layer)
        ones = kinds[:, None] == np.arange(self.kinds)
        zero = np.zeros((1, self.kinds), np.int64)
        return np.concatenate([zero, np.cumsum(ones, axis=0)]).astype(np.int64)

    def least(self, chunk: int) -> int:
        """Return how few layers a chunk may have: none only where an end keeps it."""
        return int(0 < chunk < self.chunks - 1)

    def where(self, chunk: int) -> tuple[int, int]:
        """Return rank and place on the rank of a chunk along the model."""
        return chunk % self.layout.pp, chunk // self.layout.pp


def skeleton(
    problem: Problem,
    layout: Layout,
    *,
    codes: Iterable[int] | None = None,
    room: int | None = None,
    profile: Profile | None = None,
) -> Skeleton:
    """Price a skeleton.

    Parameters
    ----------
    problem, layout
        What is trained, and how it is cut.
    codes
        Recompute choices a layer may have, coded; every legal one if None.
    room
        What a rank may use, in bytes; all that a process can use if None.
    profile
        How much of its peaks the device reaches; the device's own if None.

    Raises
    ------
    InputError
        If the schedule has no bounds, no choice is legal, or there are more chunks
        than layers and ends.
    """
    name = SCHEDULES[layout.schedule]
    if name not in BOUNDED:
        raise InputError(
            f"stages are chosen for the schedules {', '.join(BOUNDED)}, got {name}"
        )
    layers = problem.architecture.num_layers
    if layout.pp * layout.vpp > layers + 2:
        raise InputError(
            f"stages need a layer in every chunk between the ends, got {layers} "
            f"layers for pp * vpp = {layout.pp * layout.vpp} chunks"
        )
    legal = legal_codes(problem, layout, codes)
    if not legal:
        raise InputError(
            "no recompute choice that was given is legal here; give others"
        )
    model = memory_model(problem, layout, legal)
    items = items_of(model, legal)
    times = StepTimes(problem, layout, items, profile)
    kept = _undominated(items, times.backward.tolist())
    return Skeleton(
        problem=problem,
        layout=layout,
        items=kept,
        memory=RankBytes(model, layout, kept),
        times=StepTimes(problem, layout, kept, profile),
        limit=problem.cluster.device.hbm_bytes if room is None else room,
    )


def _undominated(items: tuple[Item, ...], seconds: list[float]) -> tuple[Item, ...]:
    """Drop levels that are no better than another one of their kind in anything."""
    kept = []
    for i, item in enumerate(items):
        rivals = (
            (j, other)
            for j, other in enumerate(items)
            if j != i and other.kind == item.kind
        )
        if not any(
            other.kept <= item.kept
            and other.moment <= item.moment
            and other.once <= item.once
            and (seconds[j], j) < (seconds[i], i)
            for j, other in rivals
        ):
            kept.append(item)
    return tuple(kept)
