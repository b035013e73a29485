"""The laws that a profile's factors feed: each is physical and named.

Fractions are of the peaks of ``Device`` and ``Fabric``; fractions of 1 and times of 0
describe ideal hardware.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from ..units import Seconds


def _fractions(owner: object, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not 0 < value <= 1:
            raise InputError(
                f"{name} of a profile is a fraction above 0 and at most 1, got {value}"
            )


def _at_least_zero(owner: object, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not 0 <= value < float("inf"):
            raise InputError(f"{name} of a profile is at least 0, got {value}")


@dataclass(frozen=True, kw_only=True)
class GemmLaw:
    """Efficiency of a matrix product of t tokens with the smallest side s.

    ceiling * s / (s + saturation) * t / (t + saturation). ``grouped`` multiplies it
    for the experts' grouped product.
    """

    ceiling: float
    saturation: float
    grouped: float

    def __post_init__(self) -> None:
        """Check the factors at birth."""
        _fractions(self, "ceiling", "grouped")
        _at_least_zero(self, "saturation")


@dataclass(frozen=True, kw_only=True)
class AttentionLaw:
    """Efficiency of fused causal attention over s keys: x * s / (s + saturation)."""

    forward: float
    backward: float
    saturation: float

    def __post_init__(self) -> None:
        """Check the factors at birth."""
        _fractions(self, "forward", "backward")
        _at_least_zero(self, "saturation")


@dataclass(frozen=True, kw_only=True)
class MemoryLaw:
    """Fraction of the memory bandwidth that each kind of pass reaches.

    ``elementwise`` are norms, activations, rotary embeddings and residuals,
    ``permute`` the sorting of tokens by expert, ``loss`` the cross-entropy,
    ``optimizer`` the step of the optimizer.
    """

    elementwise: float
    permute: float
    loss: float
    optimizer: float

    def __post_init__(self) -> None:
        """Check the factors at birth."""
        _fractions(self, "elementwise", "permute", "loss", "optimizer")


@dataclass(frozen=True, kw_only=True)
class LinkLaw:
    """Fraction of one network level's bandwidth by collective, and a start-up time.

    ``launch`` is what a collective costs before the first byte moves, in seconds.
    ``crowding`` is the exponent with which its bandwidth falls as a ring passes more
    domains than two: 0 on a network without contention.
    """

    all_reduce: float
    all_gather: float
    reduce_scatter: float
    all_to_all: float
    p2p: float
    launch: Seconds
    crowding: float = 0.0

    def __post_init__(self) -> None:
        """Check the factors at birth."""
        _fractions(
            self, "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p"
        )
        _at_least_zero(self, "launch", "crowding")


@dataclass(frozen=True, kw_only=True)
class StackLaw:
    """What the software hides, and what it costs.

    Attributes
    ----------
    tp_forward, tp_backward, ep_exposed
        Share of the tensor-parallel collectives of forward and backward, and of the
        experts' all-to-all, that compute does not hide.
    dp_window
        Data-parallel traffic that runs in the time of one micro-batch's forward or
        backward, as a share of that time.
    dp_tail
        Share of the data-parallel traffic that is never hidden: the last bucket.
    sharding_overlap
        Exponent o of (compute^o + traffic^o)^(1/o), the time of a layer whose weights
        are gathered while others are computed: 1 hides nothing.
    host_layer, host_moe
        Host time to launch the forward of a layer, and what a mixture of experts
        adds, in seconds.
    host_backward
        Host time of a backward, as a multiple of its forward's.
    step
        Time of a step outside its layers, in seconds.
    products, small_products, attention, passes
        What whole runs reach of the kernels' efficiency: of matrix products in 16
        bits, in 8 and 4 bits, of attention, and of memory-bound passes. Kernels are
        timed in short bursts; a run draws more power and shares its memory.
    cast
        Share of the passes of quantization that is not fused into other kernels.
    score_passes
        Passes over the scores in the forward of attention that is not fused.
    tp_hidden
        Share of the tensor-parallel collectives that user buffers hide.
    ep_hidden
        The same of the experts' exchange behind another micro-batch.
    host_tp
        What each doubling of tp adds to the host's time, as a share of it.
    stragglers
        What each doubling of the nodes adds to a step, as a share of it.
    """

    tp_forward: float
    tp_backward: float
    ep_exposed: float
    dp_window: float
    dp_tail: float
    sharding_overlap: float
    host_layer: Seconds
    host_moe: Seconds
    host_backward: float
    step: Seconds
    products: float = 1.0
    small_products: float = 1.0
    attention: float = 1.0
    passes: float = 1.0
    cast: float = 1.0
    score_passes: float = 6.0
    tp_hidden: float = 0.5
    ep_hidden: float = 0.5
    host_tp: float = 0.0
    stragglers: float = 0.0

    def __post_init__(self) -> None:
        """Check the factors at birth."""
        _at_least_zero(self, *(f.name for f in fields(self)))
        for name in ("products", "small_products", "attention", "passes"):
            if not 0 < getattr(self, name) <= 2:
                raise InputError(
                    f"{name} of a profile is above 0 and at most 2, got "
                    f"{getattr(self, name)}"
                )
        if self.sharding_overlap < 1:
            raise InputError(
                "sharding_overlap of a profile is an exponent of at least 1, got "
                f"{self.sharding_overlap}"
            )
        for name in (
            "tp_forward",
            "tp_backward",
            "ep_exposed",
            "dp_window",
            "dp_tail",
            "tp_hidden",
            "ep_hidden",
        ):
            if getattr(self, name) > 1:
                raise InputError(
                    f"{name} of a profile is a share of at most 1, got "
                    f"{getattr(self, name)}"
                )
