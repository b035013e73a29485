"""Fronts over several objectives, and over the numbers of devices too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...models.errors import InputError
from ..answer import Certificate, Choice, Memory
from ..domains import NothingDividesError
from ..single import rank_peaks
from .complete import memory_front
from .front import Front, FrontPoint
from .objectives import chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from ...models.problem import Problem
    from ..space import Space
    from .complete import MemoryFront
    from .front import Role
    from .objectives import Objective

    Floats = npt.NDArray[np.float64]
    Progress = Callable[[str, int, int], None]


def front_over_sizes(
    problems: Sequence[Problem],
    space: Space,
    objectives: Sequence[str],
    progress: Progress | None = None,
) -> Front:
    """Return the exact front of some problems that differ in their cluster.

    Parameters
    ----------
    problems
        One for each cluster to weigh; the last one is what was asked.
    space
        The axes and their values.
    objectives
        Names of ``OBJECTIVES``, two or more.
    progress
        Called with a text, what is done, and how much there is.

    Raises
    ------
    InputError
        If an objective is unknown or lacks its figure, a pin lies outside its axis,
        or more than two objectives are asked for and moocore is not installed.
    """
    wanted = chosen(objectives)
    for problem in problems:
        for objective in wanted:  # a missing price is said before the work
            objective.value(problem, 1, 1.0)
    points: list[FrontPoint] = []
    simulated = feasible = 0
    for problem in problems:
        front = _front(problem, space, progress)
        if front is not None:
            points += _points(front, wanted)
            simulated += front.simulated
            feasible += front.feasible_count
    return Front(
        problem=problems[-1],
        objectives=tuple(objectives),
        points=_named(_best(points, wanted), wanted),
        simulated=simulated,
        feasible_count=feasible,
    )


def _front(
    problem: Problem, space: Space, progress: Progress | None
) -> MemoryFront | None:
    """Return a problem's front, None where its size divides nothing."""
    try:
        return memory_front(problem, space, progress)
    except NothingDividesError:
        return None


def _points(front: MemoryFront, wanted: tuple[Objective, ...]) -> list[FrontPoint]:
    problem, space = front.domains.problem, front.domains.space
    profile = front.scores.profile
    points = []
    least = min((found.step_time_s for _, _, found in front.found), default=0.0)
    proof = Certificate(
        status="complete",
        space=space.label,
        space_hash=space.content_hash,
        dialect=problem.dialect,
        profile=profile.name,
        calibrated=profile.calibrated,
        feasible_count=front.feasible_count,
        legal_count=front.legal_count,
        bound=least,
        gap=0.0,
    )
    for layout, peak, found in front.found:
        ranks = rank_peaks(front.domains, layout, front.memory)
        held = Memory(peak_bytes=max(ranks), per_rank=ranks)
        points.append(
            FrontPoint(
                problem=problem,
                choice=Choice(layout=layout, memory=held, projection=found),
                values={
                    o.name: o.value(problem, peak, found.step_time_s) for o in wanted
                },
                role="",
                certificate=proof,
            )
        )
    return points


def _best(points: list[FrontPoint], wanted: tuple[Objective, ...]) -> list[FrontPoint]:
    """Drop what another point beats or equals in every objective."""
    if not points:
        return []
    costs = _costs(points, wanted)
    first = np.unique(costs, axis=0, return_index=True)[1]
    kept = [points[i] for i in first]  # sorted by the objectives in turn
    costs = costs[first]
    if len(wanted) == 2:
        best = np.minimum.accumulate(np.append(np.inf, costs[:-1, 1]))
        mask = costs[:, 1] < best
    else:
        mask = _moocore(costs)
    return [point for point, keep in zip(kept, mask, strict=True) if keep]


def _moocore(costs: Floats) -> npt.NDArray[np.bool_]:
    try:
        import moocore  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise InputError(
            "a front of more than two objectives needs moocore; install "
            "shardproof[pareto], or give two objectives"
        ) from None
    found: npt.NDArray[np.bool_] = moocore.is_nondominated(costs)
    return found


def _costs(points: list[FrontPoint], wanted: tuple[Objective, ...]) -> Floats:
    signs = [-1.0 if o.larger else 1.0 for o in wanted]
    return np.array(
        [[s * p.values[o.name] for o, s in zip(wanted, signs, strict=True)]
         for p in points]
    )  # fmt: skip


def _named(
    points: list[FrontPoint], wanted: tuple[Objective, ...]
) -> tuple[FrontPoint, ...]:
    """Name the ends, and of two objectives the knee."""
    from dataclasses import replace

    if not points:
        return ()
    costs = _costs(points, wanted)
    roles: dict[int, Role] = {}
    if len(wanted) == 2 and len(points) > 2:
        roles[knee(costs)] = "knee"
    roles |= {int(i): "end" for i in costs.argmin(axis=0)}
    return tuple(replace(p, role=roles.get(i, "")) for i, p in enumerate(points))


def knee(costs: Floats) -> int:
    """Return the point farthest below the line between the ends.

    Parameters
    ----------
    costs
        Points of a front of two objectives, both to be small, shape [n, 2], sorted
        by the first.

    Notes
    -----
    Both objectives are scaled to the front's own range first (Das 1999, "On
    characterizing the knee of the Pareto curve").
    """
    low, high = costs.min(axis=0), costs.max(axis=0)
    scaled = (costs - low) / np.where(high > low, high - low, 1.0)
    return int(scaled.sum(axis=1).argmin())
