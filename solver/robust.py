"""How a best configuration stands when the machine is not as the profile says.

Three questions: what one step on an axis costs, how often the best stays best when
efficiencies and bandwidths are drawn from the band, and what one node less costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..models.errors import InputError
from ..models.layout import DERIVED, Layout, axis_label
from .answer import Answer
from .domains import NothingDividesError
from .feasible import enumerate_feasible
from .plan import plan
from .scoring import Scores
from .whatif import quantity, varied_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from ..models.expr import Array
    from ..models.problem import Problem
    from .answer import Choice
    from .feasible_set import FeasibleSet
    from .space import Space

    Floats = npt.NDArray[np.float64]
    Progress = Callable[[str, int, int], None]

#: What is drawn, each by itself, as wide as the profile's band.
DRAWN = (
    "device.peak_flops",
    "device.hbm_bandwidth",
    "fabric.scale_up_bandwidth",
    "fabric.nic_bandwidth",
)
#: Axes that follow another one: vpp asks for a schedule and a split, tp for sp.
_FOLLOWING = ("schedule", "split", "sp", *DERIVED)
#: A neighbour that is slower by no more than this is in the basin.
NEAR = 0.05
#: Standard deviations of the middle 90 % of a normal distribution.
_WIDTH = 1.645
_SKELETONS = 4096


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """The fastest configuration one step away on one axis.

    ``layout`` is None where no such configuration is legal and fits; ``slower`` is
    its step time over the best one's, less 1.
    """

    axis: str
    value: str
    layout: Layout | None
    slower: float


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A configuration of those that may be the best.

    Attributes
    ----------
    layout
        The configuration.
    step_time_s
        Projected, in seconds.
    wins
        Share of the draws in which it was the fastest.
    regret_mean, regret_p90
        How much slower it was than the fastest of each draw, relative.
    """

    layout: Layout
    step_time_s: float
    wins: float
    regret_mean: float
    regret_p90: float


@dataclass(frozen=True, kw_only=True)
class Robustness:
    """What becomes of the best configuration.

    Attributes
    ----------
    problem, best
        What was asked, and its fastest configuration.
    shape
        ``broad basin`` where at least half of the neighbours that exist are within
        ``NEAR`` of the best, else ``sharp peak``.
    neighbours
        One step down and up on every axis with more than one value.
    rivals
        Configurations whose bound lies within the band, most wins first.
    draws, band
        How many machines were drawn, and how wide, relative.
    one_node_less
        The best without one node; None where nothing fits or there is one node.
    """

    problem: Problem
    best: Choice
    shape: Literal["broad basin", "sharp peak"]
    neighbours: tuple[Neighbour, ...]
    rivals: tuple[Rival, ...]
    draws: int
    band: float
    one_node_less: Choice | None


def robust(
    problem: Problem,
    space: Space,
    *,
    draws: int = 200,
    seed: int = 0,
    most: int = 64,
    progress: Progress | None = None,
) -> Robustness | None:
    """Try a problem's best configuration against machines within the band.

    Parameters
    ----------
    problem, space
        What is asked, and over which axes.
    draws
        Machines to draw.
    seed
        Of the draws; equal seeds give equal answers.
    most
        Rivals at most: those with the least bounds.
    progress
        Called with a text, what is done, and how much there is.

    Returns
    -------
    Robustness or None
        None where nothing fits.
    """
    if not 1 <= draws <= 100_000:
        raise InputError(f"draws are a whole number in 1..100,000, got {draws:,}")
    found = plan(problem, space, top=1, progress=progress)
    if not isinstance(found, Answer):
        return None
    best = found.answers[0]
    scores = Scores(problem)
    band = best.projection.band[1] / best.projection.step_time_s - 1
    everything = enumerate_feasible(problem, space)
    rows, neighbours = _gather(everything, scores, best, band, most)
    return Robustness(
        problem=problem,
        best=best,
        shape=_shape(neighbours),
        neighbours=neighbours,
        rivals=_rivals(problem, rows, scores, draws, seed, band, progress),
        draws=draws,
        band=band,
        one_node_less=_one_less(problem, space),
    )


def _gather(
    everything: FeasibleSet, scores: Scores, best: Choice, band: float, most: int
) -> tuple[dict[str, Array], tuple[Neighbour, ...]]:
    """Return the rivals as columns, and the neighbours of the best."""
    steps = _steps(everything, best.layout)
    nearest: dict[tuple[str, int], tuple[float, Layout]] = {}
    kept: dict[str, Array] = {}
    held: Floats = np.empty(0)
    limit = best.projection.step_time_s * (1 + band)
    for start in range(0, len(everything.skeletons["tp"]), _SKELETONS):
        rows = everything.rows(start, start + _SKELETONS)
        if not len(rows["tp"]):
            continue
        bounds = scores.bounds(rows)
        _note(rows, bounds, best.layout, steps, nearest)
        near = np.flatnonzero(bounds <= limit)
        held = np.concatenate([held, bounds[near]])
        order = np.argsort(held, kind="stable")[:most]
        held = held[order]
        for name, column in rows.items():
            kept[name] = np.concatenate([kept.get(name, column[:0]), column[near]])[
                order
            ]
    return kept, _neighbours(steps, nearest, scores, best)


def _steps(everything: FeasibleSet, layout: Layout) -> list[tuple[str, int]]:
    """Return for each axis the next value below and above the layout's."""
    point, steps = layout.point(), []
    for name in everything.names:
        if name in _FOLLOWING:
            continue
        source = (everything.skeletons, everything.inner, everything.flags.choices)
        column = next(table[name] for table in source if name in table)
        values = np.unique(column)
        below, above = values[values < point[name]], values[values > point[name]]
        steps += [(name, int(v)) for v in (*below[-1:], *above[:1])]
    return steps


def _note(
    rows: Mapping[str, Array],
    bounds: Floats,
    best: Layout,
    steps: Sequence[tuple[str, int]],
    nearest: dict[tuple[str, int], tuple[float, Layout]],
) -> None:
    """Keep the fastest row one step away on each axis."""
    point = best.point()
    same = {n: rows[n] == point[n] for n in rows if n not in _FOLLOWING}
    differing = np.sum([~mask for mask in same.values()], axis=0)
    for name, code in steps:
        match = np.flatnonzero((rows[name] == code) & (differing == 1))
        if not len(match):
            continue
        at = int(match[bounds[match].argmin()])
        if (name, code) not in nearest or bounds[at] < nearest[name, code][0]:
            layout = Layout.from_point({n: int(c[at]) for n, c in rows.items()})
            nearest[name, code] = (float(bounds[at]), layout)


def _neighbours(
    steps: Sequence[tuple[str, int]],
    nearest: Mapping[tuple[str, int], tuple[float, Layout]],
    scores: Scores,
    best: Choice,
) -> tuple[Neighbour, ...]:
    layouts = {key: layout for key, (_, layout) in nearest.items()}
    times = scores.simulated(list(layouts.values())) if layouts else []
    slower = {
        key: found.step_time_s / best.projection.step_time_s - 1
        for key, found in zip(layouts, times, strict=True)
    }
    return tuple(
        Neighbour(
            axis=name,
            value=axis_label(name, code),
            layout=layouts.get((name, code)),
            slower=slower.get((name, code), math.inf),
        )
        for name, code in steps
    )


def _shape(
    neighbours: tuple[Neighbour, ...],
) -> Literal["broad basin", "sharp peak"]:
    there = [n for n in neighbours if n.layout is not None]
    near = sum(n.slower <= NEAR for n in there)
    return "broad basin" if there and 2 * near >= len(there) else "sharp peak"


def _rivals(
    problem: Problem,
    rows: Mapping[str, Array],
    scores: Scores,
    draws: int,
    seed: int,
    band: float,
    progress: Progress | None,
) -> tuple[Rival, ...]:
    """Draw machines, and time every rival on each."""
    layouts = [
        Layout.from_point({n: int(c[i]) for n, c in rows.items()})
        for i in range(len(rows["tp"]))
    ]
    own = np.array([p.step_time_s for p in scores.simulated(layouts)])
    # The simulation over the bound stays as it is: a draw then needs no simulation.
    above = own / scores.bounds(rows)
    factors = np.random.default_rng(seed).normal(size=(draws, len(DRAWN)))
    factors = np.exp(factors * math.log1p(band) / _WIDTH)
    times = np.empty((draws, len(layouts)))
    for i, drawn in enumerate(factors):
        times[i] = Scores(_machine(problem, drawn)).bounds(rows) * above
        if progress:
            progress("machines drawn", i + 1, draws)
    regret = times / times.min(axis=1, keepdims=True) - 1
    wins = np.bincount(times.argmin(axis=1), minlength=len(layouts)) / draws
    found = [
        Rival(
            layout=layout,
            step_time_s=float(own[i]),
            wins=float(wins[i]),
            regret_mean=float(regret[:, i].mean()),
            regret_p90=float(np.quantile(regret[:, i], 0.9)),
        )
        for i, layout in enumerate(layouts)
    ]
    return tuple(sorted(found, key=lambda r: (-r.wins, r.step_time_s)))


def _machine(problem: Problem, factors: Floats) -> Problem:
    for name, factor in zip(DRAWN, factors.tolist(), strict=True):
        cluster = varied_cluster(problem, name, quantity(problem, name) * factor)
        problem = replace(problem, cluster=cluster)
    return problem


def _one_less(problem: Problem, space: Space) -> Choice | None:
    nodes = problem.cluster.nodes - 1
    if not nodes:
        return None
    fewer = replace(problem, cluster=replace(problem.cluster, nodes=nodes))
    try:
        found = plan(fewer, space, top=1)
    except NothingDividesError:
        return None
    return found.answers[0] if isinstance(found, Answer) else None
