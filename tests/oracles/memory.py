"""Peak bytes of every pipeline rank of one configuration, in plain integers.

Written from the sentences of docs/memory.md, for the kernels that are the default
there. Imports nothing of the solver, the expressions or the memory model: only the
classes that hold a user's input. Slow and obvious on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import memory_kept as kept
from . import memory_state as state
from .brute_force import sizes
from .memory_order import held
from .memory_run import Config, Run
from .memory_state import RECIPES

if TYPE_CHECKING:
    from shardproof.models.architecture import Layer

__all__ = ["RECIPES", "Config", "Run", "held", "peaks_of_ranks"]

CONTEXT = 551_000_000
COMMUNICATORS = 392_000_000
WORKSPACE = 33_555_456


@dataclass(frozen=True)
class Chunk:
    """The layers of a chunk in order, and which ends of the model are on it."""

    layers: list[Layer]
    first: bool
    last: bool


def chunks(run: Run) -> list[Chunk]:
    """All chunks along the model."""
    config, layers = run.config, list(run.model.layers)
    counts = sizes(config.split, len(layers), config.pp, config.vpp)
    assert counts is not None
    found = []
    for index, count in enumerate(counts):
        mine, layers = layers[:count], layers[count:]
        found.append(Chunk(mine, index == 0, index == len(counts) - 1))
    return found


def peaks_of_ranks(run: Run) -> list[int]:
    """Peak bytes of each pipeline rank."""
    along, pp = chunks(run), run.config.pp
    parts = Parts(run)
    return [parts.peak(rank, along[rank::pp]) for rank in range(pp)]


class Parts:
    """What one configuration keeps in each kind of layer, added up once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        kinds = set(run.model.layers)
        self.kept = {k: sum(kept.kept(run, k).values()) for k in kinds}
        self.moment = {k: kept.layer_moment(run, k) for k in kinds}
        self.parameters = {k: state.layer(run, k) for k in kinds}
        self.head = kept.final_norm(run) + (1 + run.model.mtp_layers) * kept.loss(run)
        self.embedding = kept.embedding(run)
        self.mtp = run.model.mtp_layers * kept.mtp(run) if run.model.mtp_layers else 0

    def peak(self, rank: int, mine: list[Chunk]) -> int:
        """The most that one rank holds over all units that it runs."""
        run, config = self.run, self.run.config
        vectors = held(config.pp, config.vpp, rank, config.m)
        most = max(self.moments(mine, vector) for vector in vectors)
        return self.always(mine) + kept.once(run) + most

    def moments(self, mine: list[Chunk], vector: tuple[int, ...]) -> int:
        """The fullest moment while so many micro-batches are held in each chunk."""
        run = self.run
        inside = sum(n * self.chunk(c) for n, c in zip(vector, mine, strict=True))
        losses = vector[-1] if mine[-1].last else 0
        layers = inside + max(losses - 1, 0) * self.head
        found = [layers + self.moment[kind] for kind in self.kinds(mine)]
        if losses:
            found.append(inside + losses * self.head + kept.loss_moment(run))
        if mine[0].first and vector[0]:
            # With one chunk the micro-batch that goes takes its loss along.
            gone = self.chunk(mine[0])
            left = max(losses - (len(mine) == 1), 0)
            moment = kept.embedding_moment(run)
            found.append(inside - gone + left * self.head + moment)
        return max(found)

    def chunk(self, chunk: Chunk) -> int:
        """What one micro-batch keeps in a chunk, the loss apart."""
        total = sum(self.kept[layer] for layer in chunk.layers)
        total += self.embedding if chunk.first else 0
        return total + (self.mtp if chunk.last else 0)

    def kinds(self, mine: list[Chunk]) -> list[Layer]:
        """Kinds of layer on a rank; multi-token prediction has the last layer's."""
        layers = [layer for chunk in mine for layer in chunk.layers]
        if mine[-1].last and self.run.model.mtp_layers:
            layers.append(self.run.model.layers[-1])
        return list(dict.fromkeys(layers))

    def always(self, mine: list[Chunk]) -> int:
        """State, caches and constants of a rank."""
        run, kinds = self.run, self.kinds(mine)
        count = state.ends(run, first=mine[0].first, last=mine[-1].last)
        for chunk in mine:
            for kind in chunk.layers:
                count += self.parameters[kind]
        has_mtp = mine[-1].last and run.model.mtp_layers > 0
        for _ in range(run.model.mtp_layers if has_mtp else 0):
            count += state.mtp(run)
        grouped = any(kind.is_moe for kind in run.model.layers)
        constants = CONTEXT + COMMUNICATORS + WORKSPACE * (5 if grouped else 1)
        cached = state.dummies(run, kinds, has_mtp=has_mtp)
        return state.state(run, count, kinds) + cached + constants
