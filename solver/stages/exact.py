"""The exact model: counts of items, and the step time as the largest of its cuts.

Letters: c a chunk along the model, r a rank, k a kind of layer, i an item. Seconds
are whole numbers of a unit that is far below a layer's time, rounded down; bytes are
exact. A solution's objective is a lower bound of its step time, and the solver's
bound is one for every plan.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, Any

import numpy as np
from ortools.sat.python import cp_model

from . import watched
from .exact_bytes import Room, Variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .cuts import Cut
    from .skeleton import Skeleton

    Ints = npt.NDArray[np.int64]
    # A number or an expression: the stubs of OR-tools have no operators for both.
    Linear = Any

#: Units in the step time of the incumbent.
_UNITS = 1e11


class Exact:
    """The model of one skeleton; cuts may be added between solves.

    Parameters
    ----------
    skeleton
        What is cut.
    incumbent
        Step time of a plan that is known, in seconds: nothing slower is looked for.
    """

    def __init__(self, skeleton: Skeleton, incumbent: float) -> None:
        """Set data, variables, constraints and objective in this order."""
        self.at = skeleton
        self.unit = incumbent / _UNITS
        self.model = cp_model.CpModel()
        self.v = Variables()
        self._forward = self._whole(skeleton.times.forward)
        self._backward = self._whole(skeleton.times.backward)
        self._hop = floor(skeleton.times.hop / self.unit)
        self._most = self._most_layers()
        self._horizon = int(_UNITS * 1.001)
        self._split()
        self._levels()
        Room(self.at, self.model, self.v, self._most).hold()
        self.piped = self._new(self._horizon, "piped")
        self.step = self._new(self._horizon, "step")
        self._work()
        self._finish()
        self.model.minimize(self.step)
        self.known: set[bytes] = set()

    def _whole(self, seconds: npt.NDArray[np.float64]) -> list[int]:
        return [int(x) for x in np.floor(seconds / self.unit)]

    def _new(self, most: int, name: str) -> cp_model.IntVar:
        return self.model.new_int_var(0, most, name)

    def _most_layers(self) -> int:
        """Bound a chunk's layers: more alone would take longer than the incumbent."""
        at, m = self.at, self.at.layout.m
        least = min(
            self._forward[i] + self._backward[i]
            for level in at.levels[:-1]
            for i in level
        )
        layers = at.problem.architecture.num_layers
        return min(layers, int(_UNITS // max(m * least, 1)) + 1)

    def _split(self) -> None:
        """Cut the layers: chunk c holds those between bounds c and c + 1."""
        at, v, model = self.at, self.v, self.model
        layers = at.problem.architecture.num_layers
        most = self._most
        v.bounds = [model.new_int_var(0, layers, f"b{c}") for c in range(at.chunks + 1)]
        model.add(v.bounds[0] == 0)
        model.add(v.bounds[-1] == layers)
        prefixes = [self._prefix(bound, c) for c, bound in enumerate(v.bounds)]
        for c in range(at.chunks):
            model.add_linear_constraint(
                v.bounds[c + 1] - v.bounds[c], at.least(c), most
            )
            if at.kinds == 1:
                v.layers.append([v.bounds[c + 1] - v.bounds[c]])
                continue
            v.layers.append(
                [
                    after - before
                    for before, after in zip(*prefixes[c : c + 2], strict=True)
                ]
            )

    def _prefix(self, bound: cp_model.IntVar, c: int) -> list[Linear]:
        """Look up how many layers of each kind lie before a bound."""
        at = self.at
        if at.kinds == 1:
            return [bound]
        found: list[Linear] = []
        for k in range(at.kinds - 1):
            column = at.prefix[:, k].tolist()
            var = self._new(column[-1], f"p{c},{k}")
            self.model.add_element(bound, column, var)
            found.append(var)
        return [*found, bound - sum(found)]

    def _levels(self) -> None:
        """Give every layer of a chunk one level."""
        at, v, model = self.at, self.v, self.model
        mtp = at.problem.architecture.mtp_layers
        for c in range(at.chunks):
            last = c == at.chunks - 1
            counts: dict[int, cp_model.IntVar] = {}
            for k, level in enumerate(at.levels):
                if k == at.kinds and not (last and mtp):
                    continue
                most = mtp if k == at.kinds else self._most
                own = {i: self._new(most, f"x{c},{i}") for i in level}
                total = mtp if k == at.kinds else v.layers[c][k]
                model.add(sum(own.values()) == total)
                counts |= own
            v.items.append(counts)
            v.backward.append(self._sum(counts, self._backward, f"B{c}"))
            v.forward.append(self._sum(counts, self._forward, f"F{c}"))
            kept = [item.kept for item in at.items]
            v.kept.append(self._sum(counts, kept, f"A{c}"))

    def _sum(
        self, counts: dict[int, cp_model.IntVar], weights: Sequence[int], name: str
    ) -> cp_model.IntVar:
        """Return a variable that equals a weighted sum of a chunk's items."""
        most = max(weights) * (self._most + self.at.problem.architecture.mtp_layers)
        var = self._new(most, name)
        self.model.add(sum(weights[i] * x for i, x in counts.items()) == var)
        return var

    def _ends(self, table: Sequence[int], c: int) -> int:
        """Return what embedding and head add to a chunk."""
        return table[-2] * (c == 0) + table[-1] * (c == self.at.chunks - 1)

    def _chunk(self, c: int) -> tuple[Linear, Linear]:
        """Return forward and backward time of a chunk, ends included."""
        ahead = self.v.forward[c] + self._ends(self._forward, c)
        return ahead, self.v.backward[c] + self._ends(self._backward, c)

    def _work(self) -> None:
        """Hold the work of every rank without a pause, the weakest bound of all."""
        at, m = self.at, self.at.layout.m
        for rank in range(at.layout.pp):
            chunks = range(rank, at.chunks, at.layout.pp)
            passes = [p for c in chunks for p in self._chunk(c)]
            self.model.add(m * sum(passes) <= self.piped)

    def add(self, cut: Cut) -> bool:
        """Hold the time of a path; return whether it was not held before."""
        if cut.key in self.known:
            return False
        self.known.add(cut.key)
        terms: list[Linear] = []
        for c in range(self.at.chunks):
            rank, place = self.at.where(c)
            numbers = cut.forward[rank, place], cut.backward[rank, place]
            passes = zip(numbers, self._chunk(c), strict=True)
            terms += [int(n) * p for n, p in passes if n]
        self.model.add(sum(terms) + cut.hops * self._hop <= self.piped)
        return True

    def _finish(self) -> None:
        """Hold what follows the pipelined part: tails, late ranks, and rank 0."""
        at, m = self.at, self.at.layout.m
        once, constant = at.times.once(), floor(at.times.profile.stack.step / self.unit)
        for rank in range(at.layout.pp):
            chunks = range(rank, at.chunks, at.layout.pp)
            tail = self._of_components(chunks, self._whole(once.tail))
            self.model.add(self.piped + tail + constant <= self.step)
            passes = sum(p for c in chunks for p in self._chunk(c))
            for exposed in self._exposed():
                late = self._of_components(
                    chunks, self._whole(exposed + once.optimizer)
                )
                self.model.add(m * passes + late + constant <= self.step)
        spent = self._of_components(
            range(0, at.chunks, at.layout.pp), self._whole(once.optimizer)
        )
        for exposed in self._exposed():
            late = self._of_components(range(1), self._whole(exposed))
            self.model.add(self.piped + late + spent + constant <= self.step)

    def _exposed(self) -> list[npt.NDArray[np.float64]]:
        """Return the lines of what is not hidden, by component."""
        once, back = self.at.times.once(), self.at.times.backward
        pairs = zip(once.lines, once.shares, strict=True)
        return [line - share * back for line, share in pairs]

    def _of_components(self, chunks: range, table: Sequence[int]) -> Linear:
        """Sum what components cost over some chunks."""
        total: Linear = 0
        for c in chunks:
            total += self._ends(table, c)
            own = self.v.items[c].items()
            total += sum(table[i] * x for i, x in own)
        return total

    def hint(self, counts: Ints) -> None:
        """Start from a plan, given as components of every chunk [pp, vpp, c]."""
        self.model.clear_hints()  # type: ignore[no-untyped-call]
        bound = 0
        for c in range(self.at.chunks):
            rank, place = self.at.where(c)
            row = counts[rank, place].tolist()
            self.model.add_hint(self.v.bounds[c], bound)
            bound += sum(
                n
                for n, item in zip(row, self.at.items, strict=False)
                if item.kind < self.at.kinds
            )
            for i, x in self.v.items[c].items():
                self.model.add_hint(x, row[i])
        self.model.add_hint(self.v.bounds[-1], bound)
        held = counts[..., :-2].sum(axis=1) > 0
        for (rank, i), mark in self.v.present.items():
            self.model.add_hint(mark, bool(held[rank, i]))

    def below(self, seconds: float) -> None:
        """Look for nothing slower than a step time from now on."""
        self.model.add(self.step <= floor(seconds / self.unit))

    def solve(
        self, start: Ints, seconds: float, workers: int
    ) -> tuple[float, Ints | None]:
        """Solve from a plan; return the bound in seconds, and the best plan found.

        Parameters
        ----------
        start
            Components of every chunk of a known plan, shape [pp, vpp, c].
        seconds
            CPU time at most.
        workers
            Threads of the solver.
        """
        self.hint(start)
        solver, status = watched.solve(self.model, seconds, workers)
        if status == cp_model.INFEASIBLE:
            return np.inf, None
        bound = max(solver.best_objective_bound, 0.0) * self.unit
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return bound, None
        return bound, self.counts(solver)

    def counts(self, solver: cp_model.CpSolver) -> Ints:
        """Read a solution as components of every chunk, shape [pp, vpp, c]."""
        at = self.at
        shape = at.layout.pp, at.layout.vpp, len(at.items) + 2
        found = np.zeros(shape, np.int64)
        for c, own in enumerate(self.v.items):
            rank, place = at.where(c)
            for i, x in own.items():
                found[rank, place, i] = solver.value(x)
        found[0, 0, -2] = found[-1, -1, -1] = 1
        return found
