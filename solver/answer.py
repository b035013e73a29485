"""What a plan says: the chosen configurations, and what was proven."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.layout import Layout
    from ..models.problem import Problem

Status = Literal["complete", "optimal", "bounded"]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Peak bytes of a configuration, for each pipeline rank and at the worst."""

    peak_bytes: int
    per_rank: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Projection:
    """Projected speed of a configuration.

    ``band`` is the interval of the step time in seconds; ``breakdown`` splits the
    step time into parts, in seconds.
    """

    step_time_s: float
    tokens_per_s_per_gpu: float
    mfu: float
    bubble_fraction: float
    band: tuple[float, float]
    breakdown: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One feasible configuration with its memory and its projection."""

    layout: Layout
    memory: Memory
    projection: Projection


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What was proven, over which space, under which rules and profile.

    ``bound`` is a lower bound of the step time in seconds over the whole space;
    ``gap`` is (incumbent - bound) / incumbent.
    """

    status: Status
    space: str
    space_hash: str
    dialect: str
    profile: str
    calibrated: bool
    feasible_count: int
    legal_count: int
    bound: float
    gap: float


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The best configurations, fastest first, with their certificate."""

    problem: Problem
    answers: tuple[Choice, ...]
    certificate: Certificate


@dataclass(frozen=True, kw_only=True)
class Clash:
    """One rule that takes part in a conflict, its sentence filled with values."""

    rule: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Correction:
    """Rules without which a point is feasible, and that point.

    ``missing_bytes`` is the least memory to add to the device where ``memory`` is
    among the rules, else 0.
    """

    rules: tuple[str, ...]
    missing_bytes: int
    witness: Layout


@dataclass(frozen=True, kw_only=True)
class Infeasible:
    """Proof that no configuration of the space is feasible.

    Attributes
    ----------
    clashes
        The smallest conflict, each rule with its sentence.
    conflicts
        Every minimal set of rules that no point of the space keeps at once.
    corrections
        Every minimal set of rules without which a point is feasible.
    missing_bytes
        What the least demanding legal configuration lacks on its worst rank, None
        if memory alone is no correction.
    nearest
        That configuration.
    legal_count
        Configurations that the rules allow; none of them fits.
    """

    problem: Problem
    clashes: tuple[Clash, ...]
    conflicts: tuple[tuple[str, ...], ...]
    corrections: tuple[Correction, ...]
    missing_bytes: int | None
    nearest: Layout | None
    space: str
    legal_count: int
