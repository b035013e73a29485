"""A profile: how much of its peaks a device and its software stack reach.

Every factor is physical and named, so that a fit may replace any of them alone.
Fractions are of the peaks of ``Device`` and ``Fabric``; a profile of fractions 1 and
times 0 describes ideal hardware.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """

    all_reduce: float
    all_gather: float
    reduce_scatter: float
    all_to_all: float
    p2p: float
    launch: Seconds

    def __post_init__(self) -> None:
        """Check the factors at birth."""
        _fractions(
            self, "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p"
        )
        _at_least_zero(self, "launch")


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

    def __post_init__(self) -> None:
        """Check the factors at birth."""
        _at_least_zero(self, *(f.name for f in fields(self)))
        if self.sharding_overlap < 1:
            raise InputError(
                "sharding_overlap of a profile is an exponent of at least 1, got "
                f"{self.sharding_overlap}"
            )
        for name in ("tp_forward", "tp_backward", "ep_exposed", "dp_window", "dp_tail"):
            if getattr(self, name) > 1:
                raise InputError(
                    f"{name} of a profile is a share of at most 1, got "
                    f"{getattr(self, name)}"
                )


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The factors of a device and its stack.

    Attributes
    ----------
    name
        Shown beside every answer.
    gemm
        By number format.
    scale_up, network
        Inside a scale-up domain, and between domains.
    calibrated
        Whether the factors were fitted to measurements of this stack.
    band
        Relative half-width of the interval of a step time.
    sources
        For each factor, ``section.name``, where its figure comes from.
    """

    name: str
    gemm: Mapping[str, GemmLaw]
    attention: AttentionLaw
    memory: MemoryLaw
    scale_up: LinkLaw
    network: LinkLaw
    stack: StackLaw
    calibrated: bool
    band: float
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the band at birth and freeze the mappings."""
        if not 0 <= self.band < 1:
            raise InputError(
                f"band of a profile is at least 0 and below 1, got {self.band}"
            )
        object.__setattr__(self, "gemm", MappingProxyType(dict(self.gemm)))
        object.__setattr__(self, "sources", MappingProxyType(dict(self.sources)))

    def gemm_law(self, precision: str) -> GemmLaw:
        """Return the law of a number format; fp16 runs as bf16 does.

        Raises
        ------
        InputError
            If the profile has no factors for the format.
        """
        known = "bf16" if precision == "fp16" else precision
        if known not in self.gemm:
            raise InputError(
                f"profile {self.name} has no factors for {precision}; it has "
                f"{', '.join(self.gemm)}"
            )
        return self.gemm[known]

    def interval(self, step_time: float) -> tuple[float, float]:
        """Return the ends of the band around a step time, in seconds."""
        return step_time * (1 - self.band), step_time * (1 + self.band)

    def factors(self) -> dict[str, float]:
        """Return every factor by its name, ``section.name``."""
        found = {"band": self.band}
        for part in fields(self):
            law = getattr(self, part.name)
            if is_dataclass(law):
                found |= {
                    f"{part.name}.{f.name}": getattr(law, f.name) for f in fields(law)
                }
        for precision, law in self.gemm.items():
            found |= {
                f"gemm.{precision}.{f.name}": getattr(law, f.name) for f in fields(law)
            }
        return found
