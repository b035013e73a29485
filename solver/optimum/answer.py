"""What the search for the optimum returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...models.problem import Problem
    from ..answer import Choice, Status
    from ..stages import Stages
    from .goals import Goal


@dataclass(frozen=True, kw_only=True)
class Found:
    """One answer: a configuration, or explicit stages, on a cluster with a batch.

    ``value`` is the objective in its own unit.
    """

    problem: Problem
    value: float
    choice: Choice | None = None
    stages: Stages | None = None

    @property
    def step_time(self) -> float:
        """Simulated step time, in seconds."""
        one = self.choice or self.stages
        assert one is not None
        return one.projection.step_time_s


@dataclass(frozen=True, kw_only=True)
class Rival:
    """An answer that the error band cannot tell from the best.

    Attributes
    ----------
    found
        The answer.
    part
        The part of the step time in which both differ most: a measurement of it
        tells them apart soonest.
    difference
        The rival's seconds in that part less the best's.
    """

    found: Found
    part: str
    difference: float


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What was proven about the best answer.

    Attributes
    ----------
    status
        ``optimal`` if no configuration of the space is better, ``bounded`` if the
        search was ended before.
    bound
        The best that the objective can be over the space, in its own unit.
    gap
        Share of the objective between the best answer and the bound.
    scored, feasible, legal
        Configurations that were simulated, that fit, and that the rules allow.
    skeletons
        Skeletons whose stages were chosen, 0 where stages were not asked for.
    stage_bound, stage_gap
        The same over every stage plan of every legal skeleton; None where stages
        were not asked for.
    """

    status: Status
    bound: float
    gap: float
    scored: int
    feasible: int
    legal: int
    skeletons: int = 0
    stage_bound: float | None = None
    stage_gap: float | None = None


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """The best answers of a goal, best first.

    Attributes
    ----------
    problem, goal, space, space_hash, profile, calibrated
        What was asked, over which space, under which profile.
    answers
        Best first; empty if nothing keeps the limits.
    rivals
        Answers of other skeletons that the error band cannot tell from the best.
    close
        Most configurations that the band cannot tell from the best.
    proof
        What was proven.
    """

    problem: Problem
    goal: Goal
    space: str
    space_hash: str
    profile: str
    calibrated: bool
    answers: tuple[Found, ...]
    rivals: tuple[Rival, ...]
    close: int
    proof: Proof
