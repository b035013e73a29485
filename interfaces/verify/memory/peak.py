"""Peak bytes of every pipeline rank of one configuration, in plain integers.

Written from the sentences of docs/memory.md, for the kernels that are the default
there. Imports nothing of the solver, the expressions or the memory model: only the
classes that hold a user's input. Obvious on purpose; what configurations share is
added up once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..splits import sizes
from . import kept, state
from .order import held
from .run import Config, Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from ....models.architecture import Architecture
    from ..saved import Training

CONTEXT = 551_000_000
COMMUNICATORS = 392_000_000
WORKSPACE = 33_555_456
#: Results that are remembered at once.
_MOST = 4096


@dataclass(frozen=True)
class Chunk:
    """Layers of each kind in a chunk, and which ends of the model are on it.

    ``kinds`` counts the layers of a kind by its number in ``Architecture.kinds``.
    """

    kinds: tuple[tuple[int, int], ...]
    first: bool
    last: bool


class Peaks:
    """The peaks of one model and training, configuration by configuration."""

    def __init__(self, model: Architecture, training: Training) -> None:
        """Take the problem; nothing is added up yet."""
        self._model, self._training = model, training
        self._known: dict[tuple[Any, ...], Any] = {}

    def of_ranks(self, config: Config) -> tuple[int, ...]:
        """Return the peak bytes of each pipeline rank."""
        run = Run(self._model, self._training, config)
        c, ranks = config, range(config.pp)
        shape, cut = (c.split, c.pp, c.vpp), (c.tp, c.cp, c.ep, c.etp)
        passing = (*shape, c.m, *cut, c.mbs, c.sp, c.recompute)
        most = self._once(
            ("most", *passing), lambda: [self._passing(run, r) for r in ranks]
        )
        numbers = self._once(
            ("numbers", *shape, *cut), lambda: [self._numbers(run, r) for r in ranks]
        )
        return tuple(
            passed + cached + state.state(run, count, kinds)
            for passed, (count, cached, kinds) in zip(most, numbers, strict=True)
        )

    def _once(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Make something, or return what was made before."""
        if key not in self._known:
            if len(self._known) > _MOST:
                self._known.clear()
            self._known[key] = make()
        return self._known[key]

    def _mine(self, config: Config, rank: int) -> list[Chunk]:
        """Return the chunks of a rank."""
        key = ("chunks", config.split, config.pp, config.vpp)
        return list(self._once(key, lambda: self._along(config))[rank :: config.pp])

    def _along(self, config: Config) -> list[Chunk]:
        """Return all chunks along the model."""
        kinds = self._model.kind_of_layer
        counts = sizes(config.split, len(kinds), config.pp, config.vpp)
        assert counts is not None, "only what is legal is measured"
        found, start = [], 0
        for i, count in enumerate(counts):
            tally = Counter(kinds[start : start + count])
            found.append(Chunk(tuple(tally.items()), i == 0, i == len(counts) - 1))
            start += count
        return found

    def _kinds(self, mine: list[Chunk]) -> list[int]:
        """Return the kinds on a rank; prediction layers have the last layer's."""
        kinds = [kind for chunk in mine for kind, _ in chunk.kinds]
        if mine[-1].last and self._model.mtp_layers:
            kinds.append(self._model.kind_of_layer[-1])
        return list(dict.fromkeys(kinds))

    def _passing(self, run: Run, rank: int) -> int:
        """Return the most that a rank keeps of micro-batches over all units."""
        c, mine = run.config, self._mine(run.config, rank)
        key = ("kept", c.tp, c.cp, c.ep, c.etp, c.mbs, c.sp, c.recompute)
        parts: Activations = self._once(key, lambda: Activations(run))
        kinds = self._kinds(mine)
        vectors = held(c.pp, c.vpp, rank, c.m)
        return parts.once + max(parts.moments(mine, kinds, v) for v in vectors)

    def _numbers(self, run: Run, rank: int) -> tuple[Any, ...]:
        """Return a rank's parameters, what is always there, and its kinds of layer."""
        model, mine = run.model, self._mine(run.config, rank)
        kinds = [model.kinds[i] for i in self._kinds(mine)]
        count = state.ends(run, first=mine[0].first, last=mine[-1].last)
        for chunk in mine:
            for kind, number in chunk.kinds:
                count += state.layer(run, model.kinds[kind]).times(number)
        has_mtp = mine[-1].last and model.mtp_layers > 0
        if has_mtp:
            count += state.mtp(run).times(model.mtp_layers)
        grouped = any(kind.is_moe for kind in model.kinds)
        constants = CONTEXT + COMMUNICATORS + WORKSPACE * (5 if grouped else 1)
        return count, constants + state.dummies(run, kinds, has_mtp=has_mtp), kinds


class Activations:
    """What one configuration keeps in each kind of layer, added up once."""

    def __init__(self, run: Run) -> None:
        """Add up each kind of layer, the ends and what is kept once."""
        kinds, model = run.model.kinds, run.model
        self.kept = [sum(kept.kept(run, k).values()) for k in kinds]
        self.moment = [kept.layer_moment(run, k) for k in kinds]
        self.head = kept.final_norm(run) + (1 + model.mtp_layers) * kept.loss(run)
        self.embedding = kept.embedding(run)
        self.mtp = model.mtp_layers * kept.mtp(run) if model.mtp_layers else 0
        self.once = kept.once(run)
        self.loss_moment = kept.loss_moment(run)
        self.embedding_moment = kept.embedding_moment(run)

    def moments(
        self, mine: list[Chunk], kinds: list[int], vector: tuple[int, ...]
    ) -> int:
        """Return the fullest moment while so many micro-batches are in each chunk."""
        chunks = [self.chunk(chunk) for chunk in mine]
        inside = sum(n * size for n, size in zip(vector, chunks, strict=True))
        losses = vector[-1] if mine[-1].last else 0
        layers = inside + max(losses - 1, 0) * self.head
        found = [layers + max(self.moment[kind] for kind in kinds)]
        if losses:
            found.append(inside + losses * self.head + self.loss_moment)
        if mine[0].first and vector[0]:
            # With one chunk the micro-batch that goes takes its loss along.
            left = max(losses - (len(mine) == 1), 0)
            rest = inside - chunks[0] + left * self.head
            found.append(rest + self.embedding_moment)
        return max(found)

    def chunk(self, chunk: Chunk) -> int:
        """Return what one micro-batch keeps in a chunk, the loss apart."""
        total = sum(self.kept[kind] * number for kind, number in chunk.kinds)
        total += self.embedding if chunk.first else 0
        return total + (self.mtp if chunk.last else 0)
