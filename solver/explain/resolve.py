"""Re-solving: whether a request is feasible with some constraints left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...models.errors import InputError
from ...models.expr import Evaluator
from ...models.layout import Layout
from ..domains import bind
from ..peaks import Peaks
from ..vector import Points, legal_points, spread
from .raw import blocks, inner_grid, raw_rows, whole_rows
from .search import MEMORY, varying

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...models.problem import Problem
    from ..answer import Infeasible
    from ..space import Space
    from .limits import Request
    from .raw import Grid


def feasible(
    problem: Problem, space: Space, skip: frozenset[str] = frozenset()
) -> Layout | None:
    """Return the feasible configuration with the lowest peak; None if there is none.

    A batch that no ``mbs * dp`` divides, or a pin outside its axis, has none. Rules
    whose ids are in ``skip`` are left out.
    """
    try:
        domains = bind(problem, space)
    except InputError:
        return None
    points = legal_points(domains, skip)
    if not points.count:
        return None
    memory = Peaks(domains)
    peaks = memory.of_points(points)
    peaks = np.where(points.legal, peaks, np.iinfo(np.int64).max)
    at = np.zeros(peaks.shape, bool)
    at.flat[int(np.argmin(peaks))] = True
    if peaks[at][0] > memory.limit:
        return None
    return Layout.from_point({n: int(c[0]) for n, c in points.columns(at).items()})


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Re-solved requests, and what did not come out as an explanation says."""

    solved: int
    wrong: tuple[str, ...]


def check(request: Request, value: Infeasible) -> Checked:
    """Re-solve each conflict and each correction.

    A correction makes the request feasible, and no longer if one of its constraints
    is restored or one of its bytes is missing. A conflict by itself excludes all, and
    no longer if one of its constraints is dropped.
    """
    everything = frozenset(_names(request))
    solver, wrong, solved = _Resolver(request), [], 0
    for kept, extra, expected, words in _statements(value, everything):
        solved += 1
        if solver.feasible(kept, extra) != expected:
            wrong.append(words)
    return Checked(solved=solved, wrong=tuple(wrong))


def _names(request: Request) -> Iterator[str]:
    yield from (name for name, _ in varying(request))
    yield from (limit.id for limit in request.limits)
    yield MEMORY


def _statements(
    value: Infeasible, everything: frozenset[str]
) -> Iterator[tuple[frozenset[str], int, bool, str]]:
    """Yield what is kept, the bytes added, whether it is feasible, and in words."""
    for correction in value.corrections:
        dropped, extra = frozenset(correction.rules), correction.missing_bytes
        rest = everything - (dropped - {MEMORY})
        shown = ", ".join(correction.rules)
        yield rest, extra, True, f"without {shown}"
        for name in sorted(dropped - {MEMORY}):
            yield rest | {name}, extra, False, f"without {shown}, {name} restored"
        if extra:
            yield rest, extra - 1, False, f"without {shown}, a byte less"
    for conflict in value.conflicts:
        kept, shown = frozenset(conflict), ", ".join(conflict)
        yield kept, 0, False, f"{shown} alone"
        for name in sorted(kept):
            yield kept - {name}, 0, True, f"{shown} alone, {name} dropped"


class _Resolver:
    """Filters raw points by the constraints that are kept; no masks."""

    def __init__(self, request: Request) -> None:
        self.request, self.memory = request, Peaks(request.wide)
        self.bodies = dict(varying(request))

    def feasible(self, kept: frozenset[str], extra: int) -> bool:
        """Whether a point keeps some constraints, on devices with extra bytes."""
        request = self.request
        values = dict(request.wide.values)
        for limit in request.limits:
            if limit.id in kept:
                values[limit.axis] = limit.allowed
        asked = request.values(frozenset())
        inside = raw_rows(request.wide, asked), inner_grid(request.wide, asked)
        freed = whole_rows(request.wide, values), inner_grid(request.wide, values)
        return any(
            self._some_point(block, inner, kept, extra)
            for rows, inner in (inside, freed)
            for block in blocks(rows, inner)
        )

    def _some_point(
        self, rows: Grid, inner: Grid, kept: frozenset[str], extra: int
    ) -> bool:
        shape = (len(rows["pp"]), *(len(codes) for codes in inner.values()))
        holds, evaluate = np.ones(shape, bool), Evaluator(spread(rows, inner))
        for name, body in self.bodies.items():
            if name in kept:
                holds &= evaluate(body) != 0
        if MEMORY not in kept or not holds.any():
            return bool(holds.any())
        keep = holds.any(axis=tuple(range(1, holds.ndim)))
        left = {n: c[keep] for n, c in rows.items()}
        points = Points(skeletons=left, inner=inner, legal=holds[keep])
        fits = self.memory.of_points(points) <= self.memory.limit + extra
        return bool((fits & points.legal).any())
