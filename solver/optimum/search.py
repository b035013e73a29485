"""Best first over every variant: simulate in the order of bounds, then choose stages.

No configuration is left out: the ones that were not simulated have a bound that is no
better than the slowest answer kept.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from ...models.layout import Layout
from ..answer import Choice, Memory
from ..single import rank_peaks
from .answer import Found, Optimum, Proof, Rival
from .goals import Goal
from .variants import variant, variants

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...models.problem import Problem
    from ..answer import Projection, Status
    from ..space import Space
    from .variants import Variant

    Progress = Callable[[str, int, int], None]

#: Configurations simulated together.
_BATCH = 64
#: Answers of other skeletons that are looked for beside the best.
_RIVALS = 3


def optimum(
    problem: Problem,
    space: Space | None = None,
    *,
    goal: Goal | None = None,
    batch_tolerance: float = 0.0,
    top: int = 10,
    stages: bool = False,
    seconds: float = 45.0,
    progress: Progress | None = None,
) -> Optimum:
    """Find the best configurations of a goal, with the proof.

    Parameters
    ----------
    problem, space
        What is asked, over which axes; the default space if None.
    goal
        Objective, prices and limits; tokens/s/GPU without limits if None.
    batch_tolerance
        How far the global batch may be from the given one, as a share of it.
    top
        How many answers to return.
    stages
        Whether to choose explicit stages inside the most promising skeletons.
    seconds
        CPU time at most for choosing stages, in seconds.
    progress
        Called with a text, what is done, and how much there is.

    Returns
    -------
    Optimum
        Interrupted, it holds what was found by then, with its gap.

    Raises
    ------
    InputError
        If a pin, a limit or a batch cannot be met by any variant's axes.
    """
    from ..space import load_space

    goal, space = goal or Goal(), space or load_space()
    found = [
        variant(p, space, goal, progress)
        for p in variants(problem, goal, batch_tolerance)
    ]
    search = _Search(goal, found, top, progress)
    try:
        search.run()
        if stages:
            from .stages import choose

            choose(search, seconds)
    except KeyboardInterrupt:
        search.interrupted = True
    return search.answer(problem, space)


class _Search:
    """Rows of all variants in the order of their bounds."""

    def __init__(
        self,
        goal: Goal,
        found: Sequence[Variant],
        top: int,
        progress: Progress | None,
    ) -> None:
        self.goal, self.variants, self.top = goal, found, top
        self.progress, self.begun = progress, time.process_time()
        scale = [goal.cost(v.problem, 1.0) for v in found]
        self.scale = scale
        bounds = [s * v.bounds for s, v in zip(scale, found, strict=True)]
        self.costs = np.concatenate(bounds)
        self.owner = np.repeat(np.arange(len(found)), [len(b) for b in bounds])
        self.row = np.concatenate([np.arange(len(b)) for b in bounds])
        self.order = np.argsort(self.costs, kind="stable")
        self.kept: list[tuple[float, int, Layout, Projection]] = []
        self.extra: list[tuple[float, Found]] = []
        self.scored = 0
        self.next_bound = np.inf if not len(self.costs) else self.costs[self.order[0]]
        self.interrupted = False
        self.skeletons = 0
        self.stage_bound: float | None = None

    def run(self) -> None:
        """Simulate until no bound left is better than the worst answer kept."""
        wanted = self.top + _RIVALS
        for start in range(0, len(self.order), _BATCH):
            batch = self.order[start : start + _BATCH]
            self.next_bound = float(self.costs[batch[0]])
            if len(self.kept) >= wanted and self.next_bound >= self.kept[wanted - 1][0]:
                return
            self._simulate(batch)
            self.kept = sorted(self.kept, key=lambda entry: entry[:1])[:wanted]
            if self.progress:
                done = min(start + _BATCH, len(self.order))
                self.progress("simulated step times", done, len(self.order))
        self.next_bound = np.inf

    def _simulate(self, batch: np.ndarray) -> None:
        for v in np.unique(self.owner[batch]).tolist():
            own, at = batch[self.owner[batch] == v], self.variants[v]
            layouts = [layout_of(at, int(self.row[i])) for i in own]
            self.scored += len(layouts)
            for layout, found in zip(
                layouts, at.scores.simulated(layouts), strict=True
            ):
                if found.step_time_s <= at.most_time:
                    cost = self.scale[v] * found.step_time_s
                    self.kept.append((cost, v, layout, found))

    @property
    def best(self) -> float:
        """The least cost of a configuration of the space, infinite if there is none."""
        return self.kept[0][0] if self.kept else np.inf

    def found(self, entry: tuple[float, int, Layout, Projection]) -> Found:
        """Turn a row into an answer."""
        _, v, layout, projection = entry
        at = self.variants[v]
        per_rank = rank_peaks(at.domains, layout, at.memory)
        memory = Memory(peak_bytes=max(per_rank), per_rank=per_rank)
        value = self.goal.figure(
            self.goal.objective, at.problem, projection.step_time_s
        )
        choice = Choice(layout=layout, memory=memory, projection=projection)
        return Found(problem=at.problem, value=value, choice=choice)

    def answer(self, problem: Problem, space: Space) -> Optimum:
        """Collect answers, rivals and proof."""
        ranked = [(entry[0], self.found(entry)) for entry in self.kept]
        ranked = sorted(ranked + self.extra, key=lambda pair: pair[0])
        answers = tuple(found for _, found in ranked[: self.top])
        first = self.variants[0].scores.profile
        close = self._close(ranked[0]) if ranked else 0
        return Optimum(
            problem=problem,
            goal=self.goal,
            space=space.label,
            space_hash=space.content_hash,
            profile=first.name,
            calibrated=first.calibrated,
            answers=answers,
            rivals=tuple(rivals(answers)),
            close=close,
            proof=self._proof(ranked[0][0] if ranked else np.inf),
        )

    def _close(self, best: tuple[float, Found]) -> int:
        """Count the configurations whose band may reach the best's."""
        one = best[1].choice or best[1].stages
        assert one is not None
        low, high = one.projection.band
        shrink = low / one.projection.step_time_s
        worst = best[0] * high / one.projection.step_time_s
        return int((self.costs * shrink < worst).sum())

    def _proof(self, best: float) -> Proof:
        """Say what was proven over configurations, and over stage plans."""
        bound = min(self.best, self.next_bound)
        proven = not self.interrupted and bool(self.kept)
        status: Status = "optimal" if proven else "bounded"
        gap = 1 - bound / self.best if self.kept else 0.0
        stage_bound = self.stage_bound
        stage_gap = None
        if stage_bound is not None and best < np.inf:
            stage_bound = min(stage_bound, best)
            stage_gap = 1 - stage_bound / best
        return Proof(
            status=status,
            bound=self._value(bound) if self.kept else 0.0,
            gap=max(gap, 0.0),
            scored=self.scored,
            feasible=sum(v.feasible for v in self.variants),
            legal=sum(v.legal for v in self.variants),
            skeletons=self.skeletons,
            stage_bound=None if stage_bound is None else self._value(stage_bound),
            stage_gap=stage_gap,
        )

    def _value(self, cost: float) -> float:
        return 1 / cost if self.goal.objective == "tokens" and cost else cost


def layout_of(at: Variant, row: int) -> Layout:
    """Return one row of a variant as a layout."""
    return Layout.from_point({n: int(c[row]) for n, c in at.columns.items()})


def rivals(answers: Sequence[Found]) -> list[Rival]:
    """Return the answers of other skeletons whose bands reach the best's."""
    found: list[Rival] = []
    if not answers:
        return found
    best = answers[0].choice or answers[0].stages
    assert best is not None
    seen = {_skeleton(best.layout)}
    for other in answers[1:]:
        one = other.choice or other.stages
        assert one is not None
        if (
            _skeleton(one.layout) in seen
            or one.projection.band[0] > best.projection.band[1]
        ):
            continue
        seen.add(_skeleton(one.layout))
        apart = {
            part: one.projection.breakdown.get(part, 0.0) - seconds
            for part, seconds in best.projection.breakdown.items()
        }
        part = max(apart, key=lambda name: abs(apart[name]))
        found.append(Rival(found=other, part=part, difference=apart[part]))
    return found[:_RIVALS]


def _skeleton(layout: Layout) -> tuple[int, ...]:
    point = layout.point()
    return tuple(v for n, v in point.items() if n not in ("split", "recompute"))
