"""What the time model answers: times of components, and projections of layouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .work import Floats


@dataclass(frozen=True, eq=False)
class StageTimes:
    """Seconds of every component for one micro-batch; arrays of shape [c, n].

    Attributes
    ----------
    names
        The components: layer kinds, MTP layer, embedding, head.
    forward, backward
        ``backward`` holds the weight gradients and what is recomputed.
    weight
        Weight gradients alone.
    hop
        From a stage to the next, shape [n].
    """

    names: tuple[str, ...]
    forward: Floats
    backward: Floats
    weight: Floats
    hop: Floats


@dataclass(frozen=True, eq=False)
class Projections:
    """Projected speed of n layouts.

    Attributes
    ----------
    step_time
        Seconds, shape [n].
    breakdown
        Seconds by part, shape [n] each; they sum to ``step_time``. Parts of layers
        are those of the rank that works longest.
    bubble_fraction
        Share of the pipelined part in which that rank waits.
    tokens_per_s_per_gpu, mfu
        Speed, and model FLOPs over the dense peak.
    band
        Relative half-width of the interval of the step time.
    """

    step_time: Floats
    breakdown: Mapping[str, Floats]
    bubble_fraction: Floats
    tokens_per_s_per_gpu: Floats
    mfu: Floats
    band: float
