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
class Infeasible:
    """Proof that no configuration of the space is feasible.

    ``clashes`` is a minimal set of rules that exclude each other in this space;
    ``missing_bytes`` is how much more memory the least demanding legal
    configuration needs on its worst rank, None if memory takes no part.
    """

    problem: Problem
    clashes: tuple[Clash, ...]
    missing_bytes: int | None
    nearest: Layout | None
    space: str
    legal_count: int
