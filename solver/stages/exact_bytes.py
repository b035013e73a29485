"""The bytes of the exact model: every moment of every rank within the device.

Marks say which items and kinds a rank holds; they may be set without need, which only
makes it fuller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ortools.sat.python import cp_model

    from .skeleton import Skeleton

    # A number or an expression: the stubs of OR-tools have no operators for both.
    Linear = Any


@dataclass
class Variables:
    """The decisions, and what follows from them; made by the exact model."""

    bounds: list[cp_model.IntVar] = field(default_factory=list)
    layers: list[list[Linear]] = field(default_factory=list)
    items: list[dict[int, cp_model.IntVar]] = field(default_factory=list)
    forward: list[Linear] = field(default_factory=list)
    backward: list[cp_model.IntVar] = field(default_factory=list)
    kept: list[cp_model.IntVar] = field(default_factory=list)
    present: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)


class Room:
    """Adds the constraints of memory to a model.

    Parameters
    ----------
    skeleton, model, variables
        What is cut, and the decisions.
    most
        Layers of a chunk at most.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        model: cp_model.CpModel,
        variables: Variables,
        most: int,
    ) -> None:
        """Take the model."""
        self.at, self.model, self.v, self._most = skeleton, model, variables, most

    def _new(self, most: int, name: str) -> cp_model.IntVar:
        return self.model.new_int_var(0, most, name)

    def hold(self) -> None:
        """Hold every moment of every rank within the device."""
        at = self.at
        pp = at.layout.pp
        for rank in range(pp):
            chunks = range(rank, at.chunks, pp)
            self._mark(rank, chunks)
            base = self._state(rank, chunks)
            moment = self._new(max(i.moment for i in at.items), f"t{rank}")
            for i, item in enumerate(at.items):
                if (rank, i) in self.v.present:
                    self.model.add(moment >= item.moment * self.v.present[rank, i])
            for vector in at.memory.held[rank]:
                self._moments(rank, chunks, vector, base, moment)

    def _mark(self, rank: int, chunks: range) -> None:
        """Mark which items a rank holds; a mark may be set without need."""
        most = self._most * len(chunks) + self.at.problem.architecture.mtp_layers
        for i in range(len(self.at.items)):
            own = [self.v.items[c][i] for c in chunks if i in self.v.items[c]]
            if own:
                mark = self.model.new_bool_var(f"y{rank},{i}")
                self.model.add(sum(own) <= most * mark)
                self.v.present[rank, i] = mark

    def _state(self, rank: int, chunks: range) -> Linear:
        """Return what is always alive on a rank, in bytes."""
        at, memory = self.at, self.at.memory
        ends = rank == 0, rank == at.layout.pp - 1
        dense, expert = memory.end_parameters(*ends)
        layers = [sum(self.v.layers[c][k] for c in chunks) for k in range(at.kinds)]
        total: Linear = memory.fixed
        for share in memory.shares:
            for start, which, ranks in (
                (dense, 0, share.dense_ranks),
                (expert, 1, share.expert_ranks),
            ):
                each = [
                    share.per_parameter * memory.kind_parameters[k][which]
                    for k in range(at.kinds)
                ]
                begin = share.per_parameter * start
                total += self._shared(begin, each, layers, ranks, rank)
        return total + self._by_kinds(rank, layers) + self._once(rank)

    def _shared(
        self,
        begin: int,
        each: Sequence[int],
        layers: Sequence[Linear],
        ranks: int,
        rank: int,
    ) -> Linear:
        """Divide bytes over ranks, rounded up once for the whole rank."""
        whole = begin + sum(e * n for e, n in zip(each, layers, strict=True) if e)
        if ranks == 1:
            return whole
        if all(e % ranks == 0 for e in each):
            own = sum(e // ranks * n for e, n in zip(each, layers, strict=True) if e)
            return own - (-begin // ranks)
        number = self.at.problem.architecture.num_layers
        part = self._new(-(-(begin + number * max(each)) // ranks), f"s{rank}")
        self.model.add(ranks * part >= whole)
        return part

    def _by_kinds(self, rank: int, layers: Sequence[Linear]) -> Linear:
        """Return what depends on which kinds a rank holds, by every set of kinds."""
        at, memory = self.at, self.at.memory
        predicts = rank == at.layout.pp - 1 and at.problem.architecture.mtp_layers > 0
        number = at.problem.architecture.num_layers
        holds = []
        for k, layer in enumerate(layers):
            mark = self.model.new_bool_var(f"q{rank},{k}")
            self.model.add(layer <= number * mark)
            holds.append(mark)
        sizes = {s: memory.by_kinds(s, predicts) for s in memory.kind_sets()}
        var = self._new(max(sizes.values()), f"d{rank}")
        for kinds, size in sizes.items():
            held = sum(holds[k] for k in kinds) - len(kinds) + 1
            self.model.add(var >= size * held)
        return var

    def _once(self, rank: int) -> Linear:
        """Return what a rank keeps once for some of its items."""
        total: Linear = 0
        for name, size in self.at.memory.once.items():
            marks = [
                mark
                for (r, i), mark in self.v.present.items()
                if r == rank and name in self.at.items[i].once
            ]
            if marks and size:
                held = self.model.new_bool_var(f"o{rank},{name}")
                self.model.add_max_equality(held, marks)
                total += size * held
        return total

    def _moments(
        self,
        rank: int,
        chunks: range,
        vector: Sequence[int],
        base: Linear,
        moment: cp_model.IntVar,
    ) -> None:
        """Hold the fullest moments of one load of micro-batches."""
        at, memory = self.at, self.at.memory
        first, last = rank == 0, rank == at.layout.pp - 1
        size = base + sum(
            n * self.v.kept[c] for n, c in zip(vector, chunks, strict=True)
        )
        embedding = memory.saved("embedding") if first else 0
        size += vector[0] * embedding
        losses, loss = (vector[-1], memory.loss) if last else (0, 0)
        self.model.add(size + max(losses - 1, 0) * loss + moment <= at.limit)
        if losses:
            now = losses * loss + memory.saved("loss moment")
            self.model.add(size + now <= at.limit)
        if first and vector[0]:
            alone = last and at.layout.vpp == 1
            after = max(losses - alone, 0) * loss + memory.saved("embedding moment")
            gone = self.v.kept[0] + embedding
            self.model.add(size - gone + after <= at.limit)
