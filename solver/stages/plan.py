"""The best stages of one skeleton: solve, simulate, cut, until bound and plan meet."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .cuts import closed_cuts, critical_cuts
from .ranks import Ranks
from .start import Greedy

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from .cuts import Cut
    from .skeleton import Skeleton

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

#: Plans near the master's that are simulated for cuts.
_NEAR = 48
#: Share of the time for good plans to start from.
_STARTING = 0.25
#: Gap below which bound and plan have met: what rounding leaves, and the
#: starts of collectives, which bounds leave out.
MET = 1e-6


@dataclass(frozen=True, eq=False)
class StagePlan:
    """Stages of a skeleton, and how good they can be.

    Attributes
    ----------
    skeleton
        What was cut.
    counts
        Components of every chunk, shape [pp, vpp, c].
    step_time
        Simulated, in seconds.
    bound
        No stages of this skeleton are faster, in seconds.
    """

    skeleton: Skeleton
    counts: Ints
    step_time: float
    bound: float

    @property
    def gap(self) -> float:
        """Share of the step time between it and the bound."""
        return max(1 - self.bound / self.step_time, 0.0)


def best_stages(
    skeleton: Skeleton,
    *,
    seconds: float = 10.0,
    gap: float = 0.0,
    workers: int = 2,
    exact: bool = True,
    report: Callable[[float, float], None] | None = None,
) -> StagePlan | None:
    """Choose the stages of a skeleton.

    Parameters
    ----------
    skeleton
        What is cut.
    seconds
        CPU time at most, in seconds.
    gap
        Stop once the gap is at most this.
    workers
        Threads of the solver.
    exact
        Whether to go on with a model of every layer's level where floors of ranks
        no longer close the gap.
    report
        Called with the incumbent and the bound, in seconds.

    Returns
    -------
    StagePlan or None
        None if no plan was found that fits.
    """
    search = _Search(skeleton, seconds, max(gap, MET), workers, report)
    search.start()
    try:
        search.by_floors()
        if exact:
            search.by_levels()
    except KeyboardInterrupt:
        search.interrupted = True
    return search.plan()


def _mean_work(at: Skeleton) -> float:
    """Return the mean over ranks of a step's work, nothing recomputed, in seconds."""
    work = at.times.forward + at.times.backward
    least = [min((work[i] for i in level), default=0.0) for level in at.levels]
    arch = at.problem.architecture
    layers = sum(least[k] for k in arch.kind_of_layer) + arch.mtp_layers * least[-1]
    return float(at.layout.m * (layers + work[-2:].sum()) / at.layout.pp)


class _Search:
    def __init__(
        self,
        skeleton: Skeleton,
        seconds: float,
        gap: float,
        workers: int,
        report: Callable[[float, float], None] | None,
    ) -> None:
        self.at, self.gap, self.workers = skeleton, gap, workers
        self.report = report
        self.begun, self.seconds = time.process_time(), seconds
        self.ranks = Ranks(skeleton)
        self.greedy = Greedy(skeleton, self.ranks)
        self.best: tuple[tuple[int, ...], Ints, float] | None = None
        self.bound = _mean_work(skeleton)
        self.interrupted = False
        self.random = np.random.default_rng(0)

    @property
    def left(self) -> float:
        """CPU seconds that are left."""
        return self.seconds - (time.process_time() - self.begun)

    @property
    def met(self) -> bool:
        """Whether the gap is small enough, or the time is over."""
        closed = self.best and self.bound >= self.best[2] * (1 - self.gap)
        return bool(closed) or self.left <= 0

    def plan(self) -> StagePlan | None:
        """Return what was found."""
        if self.best is None:
            return None
        bound = min(self.bound, self.best[2])
        return StagePlan(self.at, self.best[1], self.best[2], bound)

    def _offer(self, found: tuple[tuple[int, ...], Ints, float] | None) -> bool:
        if found and (self.best is None or found[2] < self.best[2]):
            self.best = found
            if self.report:
                self.report(found[2], min(self.bound, found[2]))
            return True
        return False

    def _raise(self, bound: float) -> None:
        assert self.best is not None
        self.bound = max(self.bound, min(bound, self.best[2]))
        if self.report:
            self.report(self.best[2], self.bound)

    def start(self) -> None:
        """Look at balanced plans and at equal depths, and improve the best of them."""
        greedy, until = self.greedy, self.begun + self.seconds * _STARTING
        for found in greedy.starts():
            self._offer(greedy.improve(found, rounds=6, until=until))
        if self.best:
            self._offer(greedy.improve(self.best[0], until=until))

    def by_floors(self) -> None:
        """Solve the master problem until it has nothing below the incumbent."""
        if self.best is None or self.met:
            return
        from .master import Master

        master = Master(self.at, self.ranks, self.best[2])
        times = self.at.times
        for cut in closed_cuts(times):
            master.add(cut)
        ahead, back = self.best[1] @ times.forward, self.best[1] @ times.backward
        for cut in self._around(ahead, back):
            master.add(cut)
        while not self.met:
            bound, found = master.solve(self.left, self.workers)
            self._raise(bound)
            if found is None:
                break
            sizes, ahead, back = found
            new = [master.add(cut) for cut in self._around(ahead, back)]
            counts = self.greedy.counts(sizes)
            if counts is not None:
                step = float(times.of(counts[None])[0])
                ahead, back = counts @ times.forward, counts @ times.backward
                new += [
                    master.add(cut)
                    for cut in critical_cuts(times, ahead[None], back[None])
                ]
                if step < self.best[2] * 1.01 and self._offer(
                    self.greedy.improve(sizes, rounds=2)
                ):
                    master.below(self.best[2])
            if not any(new):
                break

    def _around(self, ahead: Floats, back: Floats) -> list[Cut]:
        """Return the critical paths of a plan and of plans near it."""
        times, at = self.at.times, self.at
        kind = int(at.problem.architecture.kind_of_layer[-1])
        one = at.levels[kind][0]
        shape = (_NEAR, *ahead.shape)
        moved = self.random.integers(-1, 2, size=shape) * (
            self.random.random(shape) < 0.3
        )
        moved[0] = 0
        f = np.maximum(ahead + moved * times.forward[one], ahead * 0.1)
        b = np.maximum(back + moved * times.backward[one], back * 0.1)
        return critical_cuts(times, f, b)

    def by_levels(self) -> None:
        """Solve with every layer's level, which is exact, as long as there is time."""
        if self.best is None or self.met or self.at.chunks == 1:
            return
        from .exact import Exact

        model = Exact(self.at, self.best[2])
        times = self.at.times
        for cut in closed_cuts(times):
            model.add(cut)
        ahead, back = self.best[1] @ times.forward, self.best[1] @ times.backward
        for cut in self._around(ahead, back):
            model.add(cut)
        while not self.met:
            bound, counts = model.solve(self.best[1], self.left, self.workers)
            self._raise(bound)
            if counts is None:
                break
            ahead, back = counts @ times.forward, counts @ times.backward
            new = [
                model.add(cut) for cut in critical_cuts(times, ahead[None], back[None])
            ]
            if self.greedy.fits(counts):
                step = float(times.of(counts[None])[0])
                if self._offer((self.greedy.sizes(counts), counts, step)):
                    model.below(self.best[2])
            if not any(new):
                break
