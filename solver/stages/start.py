"""Good stage plans without a proof: fill ranks greedily, then move layers.

A plan is first a number of layers for every chunk. Each rank then recomputes as
little as lets it fit, cheapest bytes first; layers move between chunks as long as
the simulated step gets shorter.
"""

from __future__ import annotations

from functools import cached_property
from math import inf
from time import process_time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .ranks import Ranks
    from .skeleton import Skeleton

    Ints = npt.NDArray[np.int64]

#: Moves looked at in one round.
_MOVES = 96
_ROUNDS = 60

Chunk = tuple[int, ...]
Filled = tuple[Chunk, ...]


class Greedy:
    """Fills ranks and improves plans of one skeleton.

    Parameters
    ----------
    skeleton, ranks
        What is cut, and what its ranks can do.
    seed
        Of the choice of moves.
    """

    def __init__(self, skeleton: Skeleton, ranks: Ranks, seed: int = 0) -> None:
        """Remember ranks that were filled before."""
        self._at, self._ranks = skeleton, ranks
        self._random = np.random.default_rng(seed)
        self._filled: dict[tuple[int, Filled], Filled | None] = {}

    @cached_property
    def _hulls(self) -> list[list[int]]:
        """For each kind its levels on the lower hull of kept bytes and time."""
        seconds = self._at.times.backward
        hulls = []
        for level in self._at.levels:
            points = sorted(level, key=lambda i: (seconds[i], self._at.items[i].kept))
            hull: list[int] = []
            for i in points:
                if hull and self._at.items[i].kept >= self._at.items[hull[-1]].kept:
                    continue
                while len(hull) > 1 and self._price(hull[-2], i) <= self._price(
                    hull[-2], hull[-1]
                ):
                    hull.pop()
                hull.append(i)
            hulls.append(hull)
        return hulls

    def _price(self, fast: int, lean: int) -> float:
        """Seconds for each byte saved by going from one level to another."""
        seconds, items = self._at.times.backward, self._at.items
        saved = items[fast].kept - items[lean].kept
        return float(seconds[lean] - seconds[fast]) / max(saved, 1)

    def fill(self, rank: int, kinds: Filled) -> Filled | None:
        """Choose levels for a rank's layers; None where the leanest do not fit.

        Parameters
        ----------
        rank
            Its place in the pipeline.
        kinds
            Layers of each kind, predictions last, chunk by chunk.
        """
        if (rank, kinds) not in self._filled:
            found = self._ranks.fill(rank, kinds) if len(kinds) <= 2 else None
            if found and self._at.memory.peak(rank, found) > self._at.limit:
                found = None
            self._filled[rank, kinds] = found or self._fill(rank, kinds)
        return self._filled[rank, kinds]

    def _fill(self, rank: int, kinds: Filled) -> Filled | None:
        at, hulls = self._at, self._hulls
        chosen = [[0] * len(at.items) for _ in kinds]
        steps = []
        heavy = np.max(np.array(at.memory.held[rank]), axis=0).tolist()
        for c, chunk in enumerate(kinds):
            for kind, number in enumerate(chunk):
                if not number:
                    continue
                chosen[c][hulls[kind][0]] += number
                for fast, lean in zip(hulls[kind], hulls[kind][1:], strict=False):
                    saved = heavy[c] * (at.items[fast].kept - at.items[lean].kept)
                    if saved:
                        price = self._price(fast, lean) / heavy[c]
                        steps.append((price, saved, c, fast, lean))
        excess = at.memory.peak(rank, chosen) - at.limit
        done = []
        for _, saved, c, fast, lean in sorted(steps):
            while excess > 0 and chosen[c][fast]:
                number = min(chosen[c][fast], max(excess // saved, 1))
                chosen[c][fast] -= number
                chosen[c][lean] += number
                done.append((c, fast, lean))
                excess = at.memory.peak(rank, chosen) - at.limit
            if excess <= 0:
                break
        if excess > 0:
            return None
        self._undo(rank, chosen, done)
        return tuple(map(tuple, chosen))

    def _undo(
        self, rank: int, chosen: list[list[int]], done: Sequence[tuple[int, int, int]]
    ) -> None:
        """Take back steps that a later, larger one has made unnecessary."""
        seconds = self._at.times.backward
        order = dict.fromkeys(done)
        for c, fast, lean in sorted(order, key=lambda s: seconds[s[1]] - seconds[s[2]]):
            while chosen[c][lean]:
                chosen[c][fast] += 1
                chosen[c][lean] -= 1
                if self._at.memory.peak(rank, chosen) > self._at.limit:
                    chosen[c][fast] -= 1
                    chosen[c][lean] += 1
                    break

    def counts(self, sizes: Sequence[int]) -> Ints | None:
        """Fill every rank of a plan given by layers of each chunk along the model.

        Returns
        -------
        Array or None
            Components of every chunk, shape [pp, vpp, c]; None if a rank is too full.
        """
        at = self._at
        pp, vpp = at.layout.pp, at.layout.vpp
        ends = np.cumsum([0, *sizes])
        mtp = at.problem.architecture.mtp_layers
        by_chunk = np.diff(at.prefix[ends], axis=0).tolist()
        found = np.zeros((pp, vpp, len(at.items) + 2), np.int64)
        for rank in range(pp):
            kinds = tuple(
                (*by_chunk[c], mtp * (c == at.chunks - 1))
                for c in range(rank, at.chunks, pp)
            )
            filled = self.fill(rank, kinds)
            if filled is None:
                return None
            found[rank, :, :-2] = filled
        found[0, 0, -2] = found[-1, -1, -1] = 1
        return found

    def balanced(self, share: float = 1.0) -> tuple[int, ...]:
        """Cut the model into chunks of nearly equal time.

        Parameters
        ----------
        share
            How much of the time of both ends counts.
        """
        at = self._at
        work = at.times.forward + at.times.backward
        fastest = [min((work[i] for i in level), default=0.0) for level in at.levels]
        arch = at.problem.architecture
        layers = np.array([fastest[k] for k in arch.kind_of_layer])
        head = share * (work[-1] + arch.mtp_layers * fastest[-1])
        total = share * work[-2] + layers.sum() + head
        ends = share * work[-2] + np.concatenate([[0.0], np.cumsum(layers)])
        bounds = [0]
        for c in range(1, at.chunks):
            place = int(np.abs(ends - total * c / at.chunks).argmin())
            low = bounds[-1] + at.least(c - 1)
            left = sum(at.least(j) for j in range(c, at.chunks))
            bounds.append(min(max(place, low), len(layers) - left))
        return tuple(np.diff([*bounds, len(layers)]).tolist())

    def rows(self) -> list[tuple[int, ...]]:
        """Return plans whose chunks of one depth are equal, but for what is left over.

        Work that differs between the chunks of one depth makes ranks wait for each
        other in every group of micro-batches; work that differs between depths does
        not.
        """
        at = self._at
        pp, vpp = at.layout.pp, at.layout.vpp
        layers = at.problem.architecture.num_layers
        per_rank = -(-layers // pp)
        surplus = per_rank * pp - layers
        found = []
        for row in _rows(per_rank, vpp):
            for at_end in sorted({surplus, surplus // 2, min(surplus, 1), 0}):
                sizes = [n for n in row for _ in range(pp)]
                fullest = [c for c in range(len(sizes)) if row[c // pp] == max(row)]
                _drop(sizes, fullest, surplus, at_end)
                if all(n >= at.least(c) for c, n in enumerate(sizes)):
                    found.append(tuple(sizes))
        return list(dict.fromkeys(found))

    def starts(self) -> list[tuple[int, ...]]:
        """Return plans to start from, the most promising first."""
        plans = list(dict.fromkeys([self.balanced(), *self.rows()]))
        filled = [(sizes, self.counts(sizes)) for sizes in plans]
        fits = [(sizes, counts) for sizes, counts in filled if counts is not None]
        if not fits:
            return plans[:3]
        seconds = self._at.times.of(np.stack([counts for _, counts in fits]))
        return [fits[i][0] for i in np.argsort(seconds, kind="stable")[:3]]

    def fits(self, counts: Ints) -> bool:
        """Whether every rank of a plan fits on its device, to the byte."""
        at = self._at
        rows = counts[..., :-2].tolist()
        return all(at.memory.peak(r, row) <= at.limit for r, row in enumerate(rows))

    def sizes(self, counts: Ints) -> tuple[int, ...]:
        """Return the layers of every chunk along the model."""
        layers = [i for level in self._at.levels[:-1] for i in level]
        return tuple(counts[..., layers].sum(axis=2).T.ravel().tolist())

    def improve(
        self, sizes: tuple[int, ...], rounds: int = _ROUNDS, until: float = inf
    ) -> tuple[tuple[int, ...], Ints, float] | None:
        """Move single layers between chunks while the simulated step gets shorter.

        Parameters
        ----------
        sizes
            Layers of every chunk to start from.
        rounds
            How often to look at all moves, at most.
        until
            CPU time of the process at which to stop, in seconds.

        Returns
        -------
        tuple or None
            Layers of every chunk, components of every chunk, seconds; None if no
            plan near ``sizes`` fits.
        """
        best = self._best([sizes]) or self._best(self._moves(sizes))
        if best is None:
            return None
        for _ in range(rounds):
            if process_time() > until:
                break
            better = self._best(self._moves(best[0]))
            if better is None or better[2] >= best[2] * (1 - 1e-9):
                break
            best = better
        return best

    def _moves(self, sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
        chunks = len(sizes)
        pairs = [(i, j) for i in range(chunks) for j in range(chunks) if i != j]
        if len(pairs) > _MOVES:
            near = [(i, j) for i, j in pairs if abs(i - j) == 1]
            picked = self._random.choice(len(pairs), _MOVES, replace=False)
            pairs = list(dict.fromkeys([*near[:_MOVES], *(pairs[p] for p in picked)]))
        moved = []
        for i, j in pairs:
            if sizes[i] > self._at.least(i):
                new = list(sizes)
                new[i] -= 1
                new[j] += 1
                moved.append(tuple(new))
        return moved

    def _best(
        self, plans: Sequence[tuple[int, ...]]
    ) -> tuple[tuple[int, ...], Ints, float] | None:
        filled = [(sizes, self.counts(sizes)) for sizes in plans]
        fits = [(sizes, counts) for sizes, counts in filled if counts is not None]
        if not fits:
            return None
        seconds = self._at.times.of(np.stack([counts for _, counts in fits]))
        i = int(seconds.argmin())
        return fits[i][0], fits[i][1], float(seconds[i])


def _rows(per_rank: int, vpp: int) -> list[tuple[int, ...]]:
    """Deal a rank's layers to its chunks: evenly, and with one moved to a neighbour."""
    base, extra = divmod(per_rank, vpp)
    found = []
    for depth in range(vpp):
        even = [base] * vpp
        for d in range(extra):
            even[(depth + d) % vpp] += 1
        found.append(tuple(even))
        if vpp > 1:
            even[depth] += 1
            even[depth - 1] -= 1
            found.append(tuple(even))
    return [row for row in dict.fromkeys(found) if min(row) > 0]


def _drop(sizes: list[int], order: list[int], surplus: int, at_end: int) -> None:
    """Take layers from the last and from the first chunks of the fullest depth."""
    for i in range(at_end):
        sizes[order[-1 - i % len(order)]] -= 1
    for i in range(surplus - at_end):
        sizes[order[i % len(order)]] -= 1
