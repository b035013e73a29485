"""The master problem: layers of every chunk, each rank at the floor of its time.

Levels are left out: a rank's backward time is at least the floor of what it holds
(`ranks`). What a path asks of one chunk more than of the rank's others is charged at
the fastest level. So the master's optimum is a bound of every plan's step time, and
its layers are a plan to look at.

Letters: c a chunk along the model, r a rank, k a kind of layer. Seconds are whole
numbers of a unit far below a layer's time, rounded down.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, floor
from typing import TYPE_CHECKING, Any

import numpy as np
from ortools.sat.python import cp_model

from . import watched

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .cuts import Cut
    from .ranks import Contents, Ranks
    from .skeleton import Skeleton

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]
    # A number or an expression: the stubs of OR-tools have no operators for both.
    Linear = Any

#: Units in the step time of the incumbent.
UNITS = 1e10
#: Parts into which the share of a backward that hides traffic is cut.
_SHARES = 1_000


class Master:
    """The model of one skeleton; cuts may be added between solves.

    Parameters
    ----------
    skeleton, ranks
        What is cut, and the floors of its ranks.
    incumbent
        Step time of a plan that is known, in seconds: nothing slower is looked for.
    """

    def __init__(self, skeleton: Skeleton, ranks: Ranks, incumbent: float) -> None:
        """Set variables, constraints and objective in this order."""
        self.at, self.ranks = skeleton, ranks
        self.unit = incumbent / UNITS
        self.model = cp_model.CpModel()
        self.known: set[bytes] = set()
        self._data(incumbent)
        self.step = self._new(int(UNITS), "step")
        self.piped = self._new(int(UNITS), "piped")
        self._split()
        self._rank_floors(incumbent)
        self._tails()
        self._first_chunk()
        self.model.minimize(self.step)

    def _data(self, incumbent: float) -> None:
        """Round times down to units; a kind's time is that of its fastest level."""
        at, times = self.at, self.at.times
        self._forward = [
            times.forward[level[0]] if level else 0.0 for level in at.levels
        ]
        self._fastest = [
            min((times.backward[i] for i in level), default=0.0) for level in at.levels
        ]
        self._ahead, self._back = self._whole(self._forward), self._whole(self._fastest)
        self._end_f = self._whole(times.forward[-2:])
        self._end_b = self._whole(times.backward[-2:])
        least = min(
            f + b for f, b in zip(self._forward[:-1], self._fastest[:-1], strict=True)
        )
        layers = at.problem.architecture.num_layers
        self._most = min(layers, int(incumbent / (at.layout.m * least)) + 1)
        self._mtp = at.problem.architecture.mtp_layers

    def _whole(self, seconds: Sequence[float] | Floats) -> list[int]:
        return [floor(x / self.unit) for x in seconds]

    def _new(self, most: int, name: str) -> cp_model.IntVar:
        return self.model.new_int_var(0, most, name)

    def _split(self) -> None:
        """Cut the layers: chunk c holds those between bounds c and c + 1."""
        at, model = self.at, self.model
        layers = at.problem.architecture.num_layers
        self.bounds = [self._new(layers, f"b{c}") for c in range(at.chunks + 1)]
        model.add(self.bounds[0] == 0)
        model.add(self.bounds[-1] == layers)
        before = [self._prefix(bound) for bound in self.bounds]
        self.layers: list[list[cp_model.IntVar]] = []
        for c in range(at.chunks):
            own = [self._new(self._most, f"n{c},{k}") for k in range(at.kinds)]
            for n, low, high in zip(own, before[c], before[c + 1], strict=True):
                model.add(n == high - low)
            model.add_linear_constraint(sum(own), at.least(c), self._most)
            self.layers.append(own)

    def _prefix(self, bound: cp_model.IntVar) -> list[Linear]:
        """Look up how many layers of each kind lie before a bound."""
        found: list[Linear] = []
        for k in range(self.at.kinds - 1):
            column = self.at.prefix[:, k].tolist()
            var = self._new(column[-1], "")
            self.model.add_element(bound, column, var)
            found.append(var)
        return [*found, bound - sum(found)]

    def _of(self, rank: int) -> range:
        """Return a rank's chunks along the model."""
        return range(rank, self.at.chunks, self.at.layout.pp)

    def _ends(self, pair: Sequence[int], c: int) -> int:
        """Return what embedding and head add to a chunk."""
        return pair[0] * (c == 0) + pair[1] * (c == self.at.chunks - 1)

    def _chunk(self, c: int, each: Sequence[int], ends: Sequence[int]) -> Linear:
        """Return the time of a chunk at the fastest levels, ends included."""
        predictions = self._mtp * each[-1] * (c == self.at.chunks - 1)
        own = sum(e * n for e, n in zip(each, self.layers[c], strict=False))
        return own + predictions + self._ends(ends, c)

    def _rank_floors(self, incumbent: float) -> None:
        """Tie each rank's backward time to what it holds, and its work to the step."""
        at, m = self.at, self.at.layout.m
        self.backward: list[cp_model.IntVar] = []
        spans = self.ranks.spans(self._most)
        work = [f + b for f, b in zip(self._forward, self._fastest, strict=True)]
        for rank in range(at.layout.pp):
            chunks = self._of(rank)
            ends = sum(
                self._ends([self._end_f[i] + self._end_b[i] for i in (0, 1)], c)
                for c in chunks
            )
            budget = incumbent / m - ends * self.unit
            found = self.ranks.contents([spans[c] for c in chunks], work, budget)
            var = self._new(int(UNITS), f"B{rank}")
            self.backward.append(var)
            back = sum(self._chunk(c, self._back, self._end_b) for c in chunks)
            self.model.add(var >= back)
            if found is not None:
                low = self._new(int(UNITS), f"L{rank}")
                self._table(rank, found, budget, low)
                # A longer backward hides more of rank 0's reduction.
                self.model.add(var >= low if rank == 0 else var == low)
            ahead = sum(self._chunk(c, self._ahead, self._end_f) for c in chunks)
            self.model.add(m * ahead + m * var <= self.piped)

    def _table(
        self, rank: int, contents: list[Contents], budget: float, var: cp_model.IntVar
    ) -> None:
        """List what the rank may hold with its floors, by kind and by number."""
        chunks = self._of(rank)
        ends = sum(self._ends(self._end_b, c) for c in chunks)
        rows: list[tuple[int, ...]] = []
        least: dict[int, int] = {}
        for found in contents:
            low = self.ranks.floor(rank, found)
            ahead = sum(
                n * f for c in found for n, f in zip(c, self._forward, strict=True)
            )
            if ahead + low > budget:
                continue
            whole = floor(low / self.unit) + ends
            rows.append((*(n for c in found for n in c[: self.at.kinds]), whole))
            number = sum(sum(c[: self.at.kinds]) for c in found)
            least[number] = min(whole, least.get(number, whole))
        own = [n for c in chunks for n in self.layers[c]]
        self.model.add_allowed_assignments([*own, var], rows)
        self._by_number(rank, own, sorted(least.items()), var)

    def _by_number(
        self,
        rank: int,
        own: list[cp_model.IntVar],
        least: list[tuple[int, int]],
        var: cp_model.IntVar,
    ) -> None:
        """Hold the floor of the rank's number of layers, and its convex hull."""
        number = self._new(self.at.problem.architecture.num_layers, f"N{rank}")
        self.model.add(number == sum(own))
        for (n, low), (more, high) in pairwise(least):
            slope = (high - low) // (more - n)
            if all(low + slope * (q - n) <= w for q, w in least):
                self.model.add(var >= low + slope * (number - n))

    def _tails(self) -> None:
        """Hold what follows the pipelined part on every rank."""
        at = self.at
        constant = floor(at.times.profile.stack.step / self.unit)
        each, ends = self._least(at.times.once().tail)
        for rank in range(at.layout.pp):
            after = sum(self._chunk(c, each, ends) for c in self._of(rank))
            self.model.add(self.piped + after + constant <= self.step)

    def _first_chunk(self) -> None:
        """Hold what rank 0's first chunk does not hide, and its optimizer."""
        once, chunks = self.at.times.once(), list(self._of(0))
        constant = floor(self.at.times.profile.stack.step / self.unit)
        spent = sum(self._chunk(c, *self._least(once.optimizer)) for c in chunks)
        others = sum(self._chunk(c, self._back, self._end_b) for c in chunks[1:])
        for line, share in zip(once.lines, once.shares, strict=True):
            exposed = self._chunk(0, *self._least(line))
            # The chunk's backward is at most the rank's less what others take.
            hidden = ceil(share * _SHARES) * (self.backward[0] - others)
            left = self.step - self.piped - exposed - spent - constant
            self.model.add(_SHARES * left + hidden >= 0)

    def _least(self, table: Floats) -> tuple[list[int], list[int]]:
        """Return the least of each kind's items, and both ends, in units."""
        each = [min((table[i] for i in level), default=0.0) for level in self.at.levels]
        return self._whole(each), self._whole(table[-2:])

    def add(self, cut: Cut) -> bool:
        """Hold the time of a path; return whether it was not held before."""
        if cut.key in self.known:
            return False
        self.known.add(cut.key)
        least = cut.backward.min(axis=1)
        terms: list[Linear] = [cut.hops * floor(self.at.times.hop / self.unit)]
        for c in range(self.at.chunks):
            rank, place = self.at.where(c)
            ahead = int(cut.forward[rank, place])
            more = int(cut.backward[rank, place] - least[rank])
            if ahead:
                terms.append(ahead * self._chunk(c, self._ahead, self._end_f))
            if more:
                terms.append(more * self._chunk(c, self._back, self._end_b))
        terms += [int(n) * b for n, b in zip(least, self.backward, strict=True) if n]
        self.model.add(sum(terms) <= self.piped)
        return True

    def below(self, seconds: float) -> None:
        """Look for nothing slower than a step time from now on."""
        self.model.add(self.step <= floor(seconds / self.unit))

    def solve(
        self, seconds: float, workers: int
    ) -> tuple[float, tuple[tuple[int, ...], Floats, Floats] | None]:
        """Solve, and read the bound and the best layers found.

        Parameters
        ----------
        seconds
            CPU time at most.
        workers
            Threads of the solver.

        Returns
        -------
        tuple
            The bound in seconds, infinite where nothing is below the incumbent; and
            layers of every chunk with forward and backward times, shape [pp, vpp].
        """
        solver, status = watched.solve(self.model, seconds, workers)
        if status == cp_model.INFEASIBLE:
            return np.inf, None
        bound = max(solver.best_objective_bound, 0.0) * self.unit
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return bound, None
        return bound, self._read(solver)

    def _read(
        self, solver: cp_model.CpSolver
    ) -> tuple[tuple[int, ...], Floats, Floats]:
        at = self.at
        shape = at.layout.pp, at.layout.vpp
        bounds = [solver.value(b) for b in self.bounds]
        sizes = tuple(np.diff(bounds).tolist())
        ahead, back = np.zeros(shape), np.zeros(shape)
        for c in range(at.chunks):
            ahead[at.where(c)] = solver.value(self._chunk(c, self._ahead, self._end_f))
            back[at.where(c)] = solver.value(self._chunk(c, self._back, self._end_b))
        floors = np.array([solver.value(b) for b in self.backward])
        share = np.array(sizes).reshape(shape[::-1]).T
        share = share / np.maximum(share.sum(axis=1, keepdims=True), 1)
        more = np.maximum(floors - back.sum(axis=1), 0)[:, None]
        return sizes, ahead * self.unit, (back + more * share) * self.unit
