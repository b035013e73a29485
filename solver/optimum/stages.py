"""Stage choice inside the most promising skeletons of a search."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...models.layout import SCHEDULES, Layout
from ...models.pipeline.bounds import BOUNDED
from ...models.time import TimeModel
from ..stages import best_stages, skeleton, stages_of
from .answer import Found

if TYPE_CHECKING:
    import numpy.typing as npt

    from .search import _Search
    from .variants import Variant

    Floats = npt.NDArray[np.float64]

#: Seconds of CPU for one skeleton at most, and the gap at which it is left.
_EACH, _GAP = 6.0, 0.002
#: Skeletons tried at most.
_MOST = 12


def choose(search: _Search, seconds: float) -> None:
    """Choose stages in the order of promise, and bound what was not looked at.

    A skeleton's floor is the least step time that any stages of it can have, memory
    left aside. Skeletons whose best configuration is fastest come first; then those
    with the lowest floors.
    """
    begun = time.process_time()
    table = [_floors(search, v) for v in range(len(search.variants))]
    floors = np.concatenate([t[1] for t in table])
    layouts = [(v, layout) for v, t in enumerate(table) for layout in t[0]]
    place = {(v, key(layout)): i for i, (v, layout) in enumerate(layouts)}
    waiting = _promising(search, place)
    waiting += [i for i in np.argsort(floors, kind="stable").tolist()]
    bounds, best = floors.copy(), search.best
    for i in dict.fromkeys(waiting):
        left = seconds - (time.process_time() - begun)
        if left <= 0 or search.skeletons >= _MOST:
            break
        if bounds[i] >= best:
            continue
        v, layout = layouts[i]
        best = min(best, _choose_one(search, v, layout, min(_EACH, left), bounds, i))
        if search.progress:
            search.progress("skeletons with chosen stages", search.skeletons, _MOST)
    search.stage_bound = float(min(bounds.min(initial=np.inf), best))


def _choose_one(
    search: _Search, v: int, layout: Layout, seconds: float, bounds: Floats, i: int
) -> float:
    """Choose the stages of one skeleton; return their cost, raise its bound."""
    at = search.variants[v]
    search.skeletons += 1
    priced = skeleton(at.problem, layout, room=at.room)
    plan = best_stages(priced, seconds=seconds, gap=_GAP, exact=False)
    if plan is None:
        return np.inf
    bounds[i] = max(bounds[i], search.scale[v] * plan.bound)
    if plan.step_time > at.most_time:
        return np.inf
    cost = search.scale[v] * plan.step_time
    value = search.goal.figure(search.goal.objective, at.problem, plan.step_time)
    found = Found(problem=at.problem, value=value, stages=stages_of(plan))
    search.extra.append((cost, found))
    return cost


def key(layout: Layout) -> Layout:
    """Return a skeleton: split and recompute choice set to the first."""
    return replace(layout, split=0, recompute=0)


def _promising(search: _Search, place: dict[tuple[int, Layout], int]) -> list[int]:
    """Return the skeletons of the fastest configurations, best first."""
    from .search import layout_of

    found: dict[int, None] = {}
    for i in search.order[:20_000].tolist():
        v = int(search.owner[i])
        layout = layout_of(search.variants[v], int(search.row[i]))
        at = place.get((v, key(layout)))
        if at is not None:
            found.setdefault(at)
        if len(found) >= _MOST // 2:
            break
    return list(found)


def _floors(search: _Search, v: int) -> tuple[list[Layout], Floats]:
    """Return the legal skeletons of a variant with their floors, as costs."""
    at = search.variants[v]
    names = [n for n in at.points.skeletons if n != "split"]
    names += [n for n in at.points.inner if n != "recompute"]
    columns = at.points.columns()
    table = np.stack([columns[n] for n in names], axis=1)
    _, first = np.unique(table, axis=0, return_index=True)
    rows = {n: c[first] for n, c in columns.items()}
    arch = at.problem.architecture
    known = [SCHEDULES.index(n) for n in BOUNDED]
    usable = np.isin(rows["schedule"], known)
    usable &= rows["pp"] * rows["vpp"] <= arch.num_layers + 2
    rows = {n: c[usable] for n, c in rows.items()}
    rows |= {n: np.zeros_like(rows[n]) for n in ("split", "recompute")}
    layouts = [
        Layout(**{n: int(rows[n][i]) for n in rows}) for i in range(len(rows["pp"]))
    ]
    return layouts, search.scale[v] * floor_times(at, rows)


def floor_times(at: Variant, rows: dict[str, npt.NDArray[np.int64]]) -> Floats:
    """Return step times that no stages of skeletons undercut, shape [n], in seconds.

    The rank with most work has at least the mean of all, and nothing is recomputed;
    with one chunk a rank, the first micro-batch also passes all forwards and the
    backwards of all other ranks before the work of a rank is over: the mean over
    ranks of the second bound of `shardproof.models.pipeline.bounds`.
    """
    arch, pp = at.problem.architecture, rows["pp"]
    times = TimeModel(at.problem, at.scores.profile).stage_times(rows)
    counts = [arch.kind_of_layer.count(k) for k in range(len(arch.kinds))]
    weights = np.array([*counts, arch.mtp_layers, 1, 1], np.float64)
    ahead, back = weights @ times.forward, weights @ times.backward
    floor: Floats = rows["m"] * (ahead + back) / pp
    single = (rows["vpp"] == 1) & (rows["schedule"] == SCHEDULES.index("1f1b"))
    return np.where(single, floor + back * (pp - 1) / pp, floor)
