"""The exact front of peak memory against step time over a complete feasible set.

Few configurations have to be simulated: one whose lower bound is not below the least
simulated time at its peak or less cannot be on the front.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..domains import bind
from ..feasible_set import NAMES
from ..peaks import Peaks
from ..scoring import Scores
from ..vector import legal_points

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from ...models.expr import Array
    from ...models.layout import Layout
    from ...models.problem import Problem
    from ..answer import Projection
    from ..domains import Domains
    from ..space import Space

    Floats = npt.NDArray[np.float64]
    Progress = Callable[[str, int, int], None]

_BATCH = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryFront:
    """The front of one problem, by peak ascending and step time falling.

    Attributes
    ----------
    domains, memory, scores
        The problem over its space, its peaks and step times.
    found
        Layout, peak bytes and projection of each point.
    simulated, feasible_count, legal_count
        How many were simulated, fit, and are legal.
    """

    domains: Domains
    memory: Peaks
    scores: Scores
    found: tuple[tuple[Layout, int, Projection], ...]
    simulated: int
    feasible_count: int
    legal_count: int


def memory_front(
    problem: Problem, space: Space, progress: Progress | None = None
) -> MemoryFront:
    """Return the exact front of one problem over a space.

    Parameters
    ----------
    problem, space
        What is asked, and over which axes.
    progress
        Called with a text, what is done, and how much there is.

    Raises
    ------
    InputError
        If a pin lies outside its axis or no ``mbs * dp`` divides the batch.
    """
    domains = bind(problem, space)
    points = legal_points(domains)
    memory, scores = Peaks(domains), Scores(problem)
    peaks = memory.of_points(points, progress)
    mask = points.legal & (peaks <= memory.limit)
    columns = points.columns(mask)
    held = peaks[mask]
    kept, projections = undominated(columns, held, scores, progress)
    return MemoryFront(
        domains=domains,
        memory=memory,
        scores=scores,
        found=tuple(
            (layout_at(columns, i), int(held[i]), projections[i]) for i in kept
        ),
        simulated=len(projections),
        feasible_count=len(held),
        legal_count=points.count,
    )


def undominated(
    columns: Mapping[str, Array],
    peaks: Array,
    scores: Scores,
    progress: Progress | None = None,
) -> tuple[list[int], dict[int, Projection]]:
    """Return the rows on the front, by peak, and every projection made for it.

    Parameters
    ----------
    columns
        Every axis, shape [n].
    peaks
        Bytes, shape [n].
    scores
        Bounds and simulated times.
    progress
        As for ``memory_front``.
    """
    if not len(peaks):
        return [], {}
    bounds = scores.bounds(columns)
    order = np.lexsort([*(columns[n] for n in reversed(NAMES)), bounds, peaks])
    exact: Floats = np.full(len(order), np.inf)
    ranked = bounds[order]
    found: dict[int, Projection] = {}
    while True:
        open_rows = _open(ranked, exact)
        if not len(open_rows):
            break
        # The least bounds first: what they cost closes most of the others.
        batch = open_rows[np.argsort(ranked[open_rows], kind="stable")[:_BATCH]]
        rows = order[batch]
        layouts = [layout_at(columns, int(i)) for i in rows]
        for at, row, one in zip(batch, rows, scores.simulated(layouts), strict=True):
            exact[at], found[int(row)] = one.step_time_s, one
        if progress:
            progress("simulated step times", len(found), len(found) + len(open_rows))
    ahead = np.minimum.accumulate(np.concatenate([[np.inf], exact[:-1]]))
    return _steps(order[exact < ahead], peaks, exact[exact < ahead]), found


def _open(bounds: Floats, exact: Floats) -> npt.NDArray[np.intp]:
    """Return the rows, sorted by peak, that may still be on the front."""
    best = np.minimum.accumulate(exact)
    waiting = np.isinf(exact) & (bounds < best)
    # Of those waiting, one with a lesser bound at the same peak or less goes first.
    least = np.minimum.accumulate(np.where(waiting, bounds, np.inf))
    return np.flatnonzero(waiting & (bounds <= least))


def _steps(rows: Array, peaks: Array, times: Floats) -> list[int]:
    """Keep of rows with equal peaks the fastest, which comes last."""
    last = np.append(peaks[rows][1:] != peaks[rows][:-1], True)
    return [int(r) for r in rows[last]]


def layout_at(columns: Mapping[str, Array], row: int) -> Layout:
    """Return one row as a layout."""
    from ...models.layout import Layout

    return Layout.from_point({n: int(c[row]) for n, c in columns.items()})
