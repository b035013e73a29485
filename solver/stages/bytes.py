"""Peak bytes of a rank whose layers are at different recompute levels.

The moments are those of `shardproof.models.memory.moments`, with each layer's bytes
at its own level: what is kept is summed, what comes and goes is the largest of the
rank's items, and what a rank keeps once is kept if any of its items asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

from ...models.expr import value
from ...models.layout import SCHEDULES
from ...models.memory.constants import constants
from ...models.memory.state import GATHERING
from ...models.pipeline.inflight import in_flight
from ...models.stages import Chunk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...models.expr import Expr
    from ...models.layout import Layout
    from ...models.memory import MemoryModel
    from .items import Item


@dataclass(frozen=True)
class Share:
    """One part of a model's state: bytes a parameter, and ranks that share it."""

    per_parameter: int
    dense_ranks: int
    expert_ranks: int


@dataclass(frozen=True, eq=False)
class RankBytes:
    """Peak bytes of the ranks of one skeleton.

    Attributes
    ----------
    model, layout, items
        Memory, skeleton, and layers at their levels.
    """

    model: MemoryModel
    layout: Layout
    items: tuple[Item, ...]

    def _value(self, expression: Expr) -> int:
        return value(expression, {"recompute": self.model.board.codes[0]})

    @cached_property
    def held(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """For each rank the largest loads of micro-batches, one count a chunk."""
        at = self.layout
        return in_flight(SCHEDULES[at.schedule], at.pp, at.vpp, at.m)

    @cached_property
    def fixed(self) -> int:
        """Constants of a process."""
        return sum(c.bytes for c in constants(self.model.architecture))

    @cached_property
    def _saved(self) -> dict[str, int]:
        return {}

    def saved(self, component: str) -> int:
        """Return the bytes of embedding, final norm, loss, and their moments."""
        if component not in self._saved:
            self._saved[component] = self._value(self.model.saved(component))
        return self._saved[component]

    @cached_property
    def once(self) -> Mapping[str, int]:
        """Bytes of what a rank keeps once, by name."""
        board = self.model.board
        return {
            entry.name: self._value(entry.unit.times(entry.weight))
            for code in board.codes
            for entry in board.entries("model", code)
        }

    @cached_property
    def kind_parameters(self) -> tuple[tuple[int, int], ...]:
        """Dense and experts' parameters of one layer of each kind."""
        state = self.model.state
        kinds = self.model.architecture.kinds
        found = (state.counts(state.layer(kind)) for kind in kinds)
        return tuple((self._value(d), self._value(e)) for d, e in found)

    @lru_cache  # noqa: B019 - lives as long as the skeleton is being planned
    def end_parameters(self, embedding: bool, head: bool) -> tuple[int, int]:
        """Return what a rank's ends hold: embedding, and head with predictions."""
        arch = self.model.architecture
        nothing = (0,) * len(arch.kinds)
        mtp = arch.mtp_layers if head else 0
        chunk = Chunk(layers=nothing, mtp=mtp, embedding=embedding, head=head)
        dense, expert = self.model.state.counts(self.model.state.numbers((chunk,)))
        return self._value(dense), self._value(expert)

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """Weights, gradients and optimizer states, and who shares them."""
        at = self.layout
        return tuple(
            Share(p.per_parameter, at.dp * at.cp, at.edp)
            if at.sharding >= p.stage
            else Share(p.per_parameter, 1, 1)
            for p in self.model.state.parts
        )

    @lru_cache  # noqa: B019 - lives as long as the skeleton is being planned
    def by_kinds(self, kinds: frozenset[int], predicts: bool) -> int:
        """Return what depends on which kinds of layer a rank holds, not how many."""
        arch = self.model.architecture
        layers = tuple(int(k in kinds) for k in range(len(arch.kinds)))
        mtp = arch.mtp_layers if predicts else 0
        stage = (Chunk(layers=layers, mtp=mtp, embedding=False, head=False),)
        size = self._value(self.model.dummies(stage))
        if self.layout.sharding >= GATHERING and kinds:
            weights = self.model.state.parts[0].per_parameter
            size += 2 * weights * max(sum(self.kind_parameters[k]) for k in kinds)
        return size

    def kind_sets(self) -> list[frozenset[int]]:
        """Return every set of kinds, smallest first."""
        kinds = range(len(self.model.architecture.kinds))
        return [
            frozenset(s) for n in range(len(kinds) + 1) for s in combinations(kinds, n)
        ]

    def state(self, rank_kinds: Sequence[int], *, embedding: bool, head: bool) -> int:
        """Return weights, gradients, optimizer states and what goes with them.

        Parameters
        ----------
        rank_kinds
            Decoder layers of each kind on the rank.
        embedding, head
            Whether the ends are there.
        """
        dense, expert = self.end_parameters(embedding, head)
        for number, (d, e) in zip(rank_kinds, self.kind_parameters, strict=True):
            dense, expert = dense + number * d, expert + number * e
        size = self.fixed
        for share in self.shares:
            size += -(-share.per_parameter * dense // share.dense_ranks)
            size += -(-share.per_parameter * expert // share.expert_ranks)
        kinds = frozenset(k for k, n in enumerate(rank_kinds) if n)
        predicts = head and self.model.architecture.mtp_layers > 0
        return size + self.by_kinds(kinds, predicts)

    def peak(self, rank: int, counts: Sequence[Sequence[int]]) -> int:
        """Return the peak bytes of a rank.

        Parameters
        ----------
        rank
            Its place in the pipeline.
        counts
            How many there are of each item, chunk by chunk.
        """
        embedding, head = rank == 0, rank == self.layout.pp - 1
        present = [i for i in range(len(self.items)) if any(c[i] for c in counts)]
        kinds = [0] * len(self.model.architecture.kinds)
        for chunk in counts:
            for i, number in enumerate(chunk):
                if number and self.items[i].kind < len(kinds):
                    kinds[self.items[i].kind] += number
        names = frozenset().union(*(self.items[i].once for i in present))
        base = self.state(kinds, embedding=embedding, head=head)
        base += sum(self.once[name] for name in names)
        kept = [
            sum(n * item.kept for n, item in zip(chunk, self.items, strict=True) if n)
            for chunk in counts
        ]
        moment = max((self.items[i].moment for i in present), default=0)
        return base + max(
            self._at(vector, kept, moment, embedding, head)
            for vector in self.held[rank]
        )

    def _at(
        self,
        vector: Sequence[int],
        kept: Sequence[int],
        moment: int,
        embedding: bool,
        head: bool,
    ) -> int:
        """Return the fullest of the moments of one load of micro-batches."""
        size = sum(n * k for n, k in zip(vector, kept, strict=True))
        first = self.saved("embedding") if embedding else 0
        size += vector[0] * first
        losses, loss = (vector[-1], self.loss) if head else (0, 0)
        moments = [size + max(losses - 1, 0) * loss + moment]
        if losses:
            moments.append(size + losses * loss + self.saved("loss moment"))
        if embedding and vector[0]:
            before = size - kept[0] - first
            fewer = losses - 1 if self.layout.vpp == 1 and head else losses
            ending = before + max(fewer, 0) * loss + self.saved("embedding moment")
            moments.append(ending)
        return max(moments)

    @cached_property
    def loss(self) -> int:
        """Bytes that the losses of one micro-batch keep: final norm and all heads."""
        heads = 1 + self.model.architecture.mtp_layers
        return self.saved("final norm") + heads * self.saved("loss")
