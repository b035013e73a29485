"""Why not this configuration: every rule that it breaks, and what is legal nearby."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

from ...models.expr import Evaluator, value
from ...models.layout import AXES, DERIVED, NAMED_AXES, Layout
from ..domains import bind
from ..peaks import NO_MEMORY, Peaks
from ..rules import Facts
from ..single import clash, memory_clash
from ..vector import derived, derived_equalities

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...models.expr import Array
    from ...models.problem import Problem
    from ..answer import Clash, Projection
    from ..domains import Domains
    from ..space import Space

    Point = Mapping[str, int]

#: Axes that neighbours differ in at most, and points looked at in one go.
_MOST_AXES = 5
_MOST_POINTS = 2_000_000


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A feasible configuration near another one.

    Attributes
    ----------
    changed
        The axes in which it differs.
    steps
        Values that lie between, summed over axes; 1 for an axis of names.
    """

    layout: Layout
    changed: tuple[str, ...]
    steps: int
    peak_bytes: int
    projection: Projection


@dataclass(frozen=True, kw_only=True)
class Why:
    """One configuration: the rules it breaks at once, and its nearest neighbours.

    Attributes
    ----------
    peak_bytes, missing_bytes
        Peak of the fullest rank, and what the device lacks; None where the
        configuration gives no pipeline to measure.
    """

    problem: Problem
    layout: Layout
    clashes: tuple[Clash, ...]
    peak_bytes: int | None
    missing_bytes: int | None
    neighbours: tuple[Neighbour, ...]


def why(problem: Problem, space: Space, layout: Layout, *, top: int = 5) -> Why:
    """Say every rule that a layout breaks, and the nearest feasible layouts.

    Parameters
    ----------
    problem, space
        The request; neighbours lie in the space and keep the pins.
    layout
        The configuration; its derived axes may be rounded down.
    top
        Neighbours to return at most: fewest axes changed first, then fewest steps.

    Raises
    ------
    InputError
        If a pin lies outside its axis or no ``mbs * dp`` divides the batch.
    """
    domains = bind(problem, space)
    # The point may lie outside the space: its own values join the axes.
    at, around = layout.point(), space
    if len(domains.values["gbs"]) == 1:
        # A rounded layout multiplies to another batch than the one asked for.
        at["gbs"] = domains.values["gbs"][0]
    for name in AXES:
        around = around.restrict(name, (*domains.values[name], at[name]))
    near = bind(replace(problem, pins={}), around)
    memory = Peaks(near)
    peak = int(memory.of_columns({n: np.array([c]) for n, c in at.items()})[0])
    broken = _broken(near, at)
    measured = peak < NO_MEMORY and not any(c.rule.startswith("layers") for c in broken)
    missing = max(peak - memory.limit, 0) if measured else None
    if missing:
        broken.append(memory_clash(peak, layout, memory.limit))
    return Why(
        problem=problem,
        layout=layout,
        clashes=tuple(broken),
        peak_bytes=peak if measured else None,
        missing_bytes=missing,
        neighbours=_neighbours(domains, near, memory, at, top) if broken else (),
    )


def rounded_layout(problem: Problem, point: Mapping[str, int]) -> Layout:
    """Add derived axes, rounded down where they are not whole, and at least 1."""
    world, batch = problem.cluster.world_size, problem.training.global_batch
    dp = max(world // (point["tp"] * point["pp"] * point["cp"]), 1)
    edp = max(world // (point["etp"] * point["ep"] * point["pp"]), 1)
    m = max(batch // (point["mbs"] * dp), 1)
    return Layout.from_point({**point, "dp": dp, "edp": edp, "m": m})


def _broken(near: Domains, at: Mapping[str, int]) -> list[Clash]:
    facts = Facts(problem=near.problem, dims=near.dims)
    return [clash(r, facts, at) for r, body in near.rules if not value(body, at)]


def _neighbours(
    domains: Domains, near: Domains, memory: Peaks, at: Point, top: int
) -> tuple[Neighbour, ...]:
    """Look at all points that differ in 1 axis, in 2, and so on."""
    found: list[tuple[int, int, int, Layout]] = []
    for size in range(1, _MOST_AXES + 1):
        for columns in _shell(domains, at, size):
            rows = _legal(near, columns)
            peaks = memory.of_columns(rows) if len(rows["pp"]) else np.zeros(0, int)
            for i in np.flatnonzero(peaks <= memory.limit):
                other = Layout.from_point({n: int(c[i]) for n, c in rows.items()})
                steps = _steps(near, at, other)
                found.append((size, steps, int(peaks[i]), other))
        if len(found) >= top:
            break
    found = sorted(found, key=lambda f: (*f[:3], tuple(f[3].point().values())))[:top]
    return _projected(near.problem, at, found)


def _projected(
    problem: Problem, at: Point, found: list[tuple[int, int, int, Layout]]
) -> tuple[Neighbour, ...]:
    if not found:
        return ()
    from ..scoring import Scores

    projections = Scores(problem).simulated([other for *_, other in found])
    return tuple(
        Neighbour(
            layout=other,
            changed=_changed(at, other),
            steps=steps,
            peak_bytes=peak,
            projection=projection,
        )
        for (_, steps, peak, other), projection in zip(found, projections, strict=True)
    )


def _changed(a: Point, other: Layout) -> tuple[str, ...]:
    b = other.point()
    return tuple(n for n in AXES if a[n] != b[n])


def _steps(near: Domains, a: Point, other: Layout) -> int:
    b, total = other.point(), 0
    for name in _changed(a, other):
        codes = near.values[name]
        apart = abs(codes.index(a[name]) - codes.index(b[name]))
        total += 1 if name in NAMED_AXES else apart
    return total


def _shell(domains: Domains, at: Point, size: int) -> Iterator[dict[str, Array]]:
    """Yield the points of the space that differ in just so many axes."""
    outside = {n for n in AXES if at[n] not in domains.values[n]}
    for names in combinations(AXES, size):
        if not outside <= set(names):
            continue
        others = [[c for c in domains.values[n] if c != at[n]] for n in names]
        if not 0 < np.prod([len(o) for o in others]) <= _MOST_POINTS:
            continue
        grid = np.array(list(product(*others)), np.int64).reshape(-1, size)
        columns = {n: np.full(len(grid), at[n], np.int64) for n in AXES}
        yield columns | {n: grid[:, i] for i, n in enumerate(names)}


def _legal(near: Domains, columns: dict[str, Array]) -> dict[str, Array]:
    """Keep the points that multiply to the devices and the batch, and the rules."""
    rows = dict(columns)
    for name in DERIVED:
        rows[name] = np.maximum(derived(name, near, rows), 1)
    for body in (*derived_equalities(near), *(b for _, b in near.rules)):
        if body.constant is None or not body.constant:
            keep = np.broadcast_to(Evaluator(rows)(body) != 0, rows["pp"].shape)
            rows = {n: c[keep] for n, c in rows.items()}
    return rows
