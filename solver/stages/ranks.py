"""What a rank can do with the layers it holds: floors of its time, and fillings.

A rank's recomputation is a choice of its own once its layers are known. One largest
moment at a time it is a knapsack, solved on frontiers of (kept bytes, time): exact
for one or two chunks a rank and the schedules' loads; with more chunks a floor uses
the heaviest loads one at a time.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np

from .frontiers import Frontiers, added

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .frontiers import Content, Floats, Frontier
    from .skeleton import Skeleton

    Ints = npt.NDArray[np.int64]

Contents = tuple["Content", ...]
Load = tuple[int, ...]
#: Groups of moments that a floor tells apart.
_GROUPS = 8
#: Loads that a floor looks at with more than two chunks a rank.
_LOADS = 2
#: More bytes than there are.
_ALL = 2**60
#: Contents of a rank above which they are not listed.
MOST_CONTENTS = 6_000


class Ranks:
    """The ranks of one skeleton.

    Parameters
    ----------
    skeleton
        What is cut.
    """

    def __init__(self, skeleton: Skeleton) -> None:
        """Keep frontiers and answers."""
        self._at = skeleton
        self._frontiers = Frontiers(skeleton)
        self._floors: dict[tuple[int, Contents], float] = {}

    @cached_property
    def _moments(self) -> list[list[int]]:
        items = self._at.items
        return [sorted({items[i].moment for i in level}) for level in self._at.levels]

    def _groups(self, contents: Contents, most: int) -> list[tuple[int, int]]:
        """Group the moments a rank can have, each group by its least and largest."""
        held = [k for k in range(self._at.kinds + 1) if any(c[k] for c in contents)]
        # The largest moment is one of a kind that is there, and none is above it.
        low = max(self._moments[k][0] for k in held)
        moments = sorted({t for k in held for t in self._moments[k] if t >= low})
        number = min(most, len(moments))
        ends = np.linspace(0, len(moments), number + 1).astype(int).tolist()
        return [(moments[a], moments[b - 1]) for a, b in pairwise(ends)]

    def floor(self, rank: int, contents: Contents) -> float:
        """Return a time that a rank's backwards never undercut, ends left out.

        Parameters
        ----------
        rank
            Its place in the pipeline.
        contents
            What each of its chunks holds.

        Returns
        -------
        float
            Seconds for one micro-batch; infinite where the layers do not fit.
        """
        key = rank, contents
        if key not in self._floors:
            self._floors[key] = self._floor(rank, contents)
        return self._floors[key]

    def _floor(self, rank: int, contents: Contents) -> float:
        if not any(map(any, contents)):
            return 0.0
        base = self._base(rank, contents)
        found = (
            self._least(rank, contents, base, low, high)
            for low, high in self._groups(contents, _GROUPS)
        )
        return min(found)

    def _least(
        self, rank: int, contents: Contents, base: int, low: int, high: int
    ) -> float:
        """Return the least time with moments up to ``high`` that weigh ``low``."""
        loads = self._loads(rank, base, low)
        if min(room for _, room in loads) < 0:
            return np.inf
        fronts = [self._frontiers.of(c, high) for c in contents]
        if len(contents) <= 2:
            _, times = self._pairs(fronts, loads)
            return float(times.min(initial=np.inf))
        held = [
            sum(n * sum(c) for n, c in zip(load, contents, strict=True)) / max(room, 1)
            for load, room in loads
        ]
        heaviest = np.argsort(held)[::-1][:_LOADS]
        return max(_one_load(fronts, *loads[i]) for i in heaviest)

    def _pairs(
        self, fronts: list[Frontier], loads: list[tuple[Load, int]]
    ) -> tuple[Ints, Floats]:
        """Return for each point of the first chunk the second's, and both times.

        Points that do not fit with any have an infinite time; the place on a second
        chunk that is not there is 0.
        """
        first = fronts[0]
        lefts = []
        for load, room in loads:
            left = room - load[0] * first.kept
            if len(fronts) == 2 and load[1]:
                left //= load[1]
            lefts.append(
                left if len(fronts) == 2 and load[1] else np.where(left < 0, -1, _ALL)
            )
        left = np.min(lefts, axis=0)
        if len(fronts) == 1:
            return np.zeros(len(left), np.int64), np.where(left < 0, np.inf, first.time)
        second = fronts[1]
        place = np.searchsorted(second.kept, left, side="right") - 1
        times = first.time + second.time[np.maximum(place, 0)]
        return place, np.where(place < 0, np.inf, times)

    def fill(self, rank: int, contents: Contents) -> tuple[tuple[int, ...], ...] | None:
        """Choose the levels with the least time, for one or two chunks a rank.

        Returns
        -------
        tuple or None
            How many there are of each item, chunk by chunk; None if none fits.
        """
        if not any(map(any, contents)):
            return ((0,) * len(self._at.items),) * len(contents)
        base = self._base(rank, contents)
        best, chosen = np.inf, None
        groups = self._groups(contents, _GROUPS)
        floors = [self._least(rank, contents, base, *group) for group in groups]
        for i in np.argsort(floors, kind="stable").tolist():
            if floors[i] >= best:
                break
            low, high = groups[i]
            for moment in self._between(contents, low, high):
                loads = self._loads(rank, base, moment)
                if min(room for _, room in loads) < 0:
                    continue
                fronts = [self._frontiers.of(c, moment) for c in contents]
                places, times = self._pairs(fronts, loads)
                at = int(times.argmin())
                if times[at] < best:
                    best, chosen = float(times[at]), (moment, (at, int(places[at])))
        if chosen is None:
            return None
        moment, pair = chosen
        return tuple(
            self._frontiers.trace(c, moment, p)
            for c, p in zip(contents, pair, strict=False)
        )

    def _between(self, contents: Contents, low: int, high: int) -> list[int]:
        groups = self._groups(contents, 2**20)
        return [t for t, _ in groups if low <= t <= high]

    def _base(self, rank: int, contents: Contents) -> int:
        """Return what is always alive on the rank, at least."""
        at = self._at
        totals = [sum(c[k] for c in contents) for k in range(at.kinds)]
        size = at.memory.state(
            totals, embedding=rank == 0, head=rank == at.layout.pp - 1
        )
        shared = frozenset.intersection(*(item.once for item in at.items))
        return size + sum(at.memory.once[name] for name in shared)

    def _loads(self, rank: int, base: int, moment: int) -> list[tuple[Load, int]]:
        """Return loads of micro-batches, and the room for what layers keep of each.

        At the fullest moments of `RankBytes.peak`: a layer runs backward, the loss
        does, the embedding does.
        """
        at, memory = self._at, self._at.memory
        first, last = rank == 0, rank == at.layout.pp - 1
        embedding = memory.saved("embedding") if first else 0
        found = []
        for load in memory.held[rank]:
            losses, loss = (load[-1], memory.loss) if last else (0, 0)
            room = at.limit - base - load[0] * embedding
            found.append((load, room - max(losses - 1, 0) * loss - moment))
            if losses:
                now = losses * loss + memory.saved("loss moment")
                found.append((load, room - now))
            if first and load[0]:
                alone = last and at.layout.vpp == 1
                now = max(losses - alone, 0) * loss + memory.saved("embedding moment")
                before = load[0] - 1, *load[1:]
                found.append((before, room + embedding - now))
        return found

    def spans(self, most: int) -> list[list[Content]]:
        """Return what each chunk may hold, with at most so many layers."""
        at = self._at
        layers, prefix = at.problem.architecture.num_layers, at.prefix
        before = np.cumsum([0, *(at.least(c) for c in range(at.chunks))])
        found = []
        for c in range(at.chunks):
            last = c == at.chunks - 1
            mtp = at.problem.architecture.mtp_layers * last
            behind = int(before[-1] - before[c + 1])
            starts = [0] if c == 0 else range(int(before[c]), layers - behind + 1)
            ends = (
                (a, b)
                for a in starts
                for b in range(a + at.least(c), min(a + most, layers - behind) + 1)
                if not last or b == layers
            )
            spans = {tuple((prefix[b] - prefix[a]).tolist()) for a, b in ends}
            found.append([(*span, mtp) for span in sorted(spans)])
        return found

    def contents(
        self, spans: Sequence[Sequence[Content]], work: Sequence[float], budget: float
    ) -> list[Contents] | None:
        """Return what a rank may hold within a budget of work; None if too much.

        Parameters
        ----------
        spans
            What each chunk may hold.
        work
            Least seconds of a layer of each kind.
        budget
            Seconds of all layers.
        """
        priced = [
            [(sum(n * w for n, w in zip(c, work, strict=True)), c) for c in span]
            for span in spans
        ]
        least = [min(p for p, _ in chunk) for chunk in priced]
        rest = [sum(least[i + 1 :]) for i in range(len(least))]
        partial: list[tuple[float, Contents]] = [(0.0, ())]
        for chunk, later in zip(priced, rest, strict=True):
            partial = [
                (spent + p, (*found, c))
                for (spent, found), (p, c) in product(partial, chunk)
                if spent + p + later <= budget
            ]
            if len(partial) > MOST_CONTENTS:
                return None
        return [found for _, found in partial]


def _one_load(fronts: Sequence[Frontier], load: Load, room: int) -> float:
    """Return the least time under one load's room alone."""
    kept, time = np.zeros(1, np.int64), np.zeros(1)
    for front, number in zip(fronts, load, strict=True):
        kept, time = added((kept, time), (front.kept * number, front.time))
        fits = kept <= room
        kept, time = kept[fits], time[fits]
    return float(time.min(initial=np.inf))
