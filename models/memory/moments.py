"""The moments of a rank that may be its peak, in names of components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..stages import Chunk, Stage

InFlight = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Moment:
    """Components alive between forward and backward pass, and one that comes and goes.

    ``kept`` gives for each component how often it is alive; ``chunks`` for each
    chunk its layers by kind, and how many micro-batches it holds: recomputing layers
    in groups, or the first alone, looks at a chunk as a whole.
    """

    kept: tuple[tuple[str, int], ...]
    transient: str | None
    chunks: tuple[tuple[tuple[int, ...], int], ...] = ()


class _Held(NamedTuple):
    """What layers and embedding keep, losses alive, heads of each, and the chunks."""

    kept: dict[str, int]
    losses: int
    heads: int
    chunks: tuple[tuple[tuple[int, ...], int], ...]


def _moment(held: _Held, losses: int, transient: str | None) -> Moment:
    whole, heads = dict(held.kept), held.heads
    if losses:
        whole["final norm"] = losses
        whole["loss"] = losses * heads
    return Moment(tuple(whole.items()), transient, held.chunks)


def _chunk(chunk: Chunk) -> Iterator[tuple[str, int]]:
    """Yield the components a micro-batch keeps in a chunk, the loss apart."""
    for index, count in enumerate(chunk.layers):
        if count:
            yield f"layer {index}", count
    if chunk.mtp:
        yield "mtp", chunk.mtp
    if chunk.embedding:
        yield "embedding", 1


def _held(stage: Stage, vector: tuple[int, ...]) -> _Held:
    kept: dict[str, int] = {"model": 1}
    losses = heads = 0
    for count, chunk in zip(vector, stage, strict=True):
        for name, times in _chunk(chunk):
            kept[name] = kept.get(name, 0) + count * times
        if chunk.head:
            losses, heads = count, 1 + chunk.mtp
    chunks = tuple((c.layers, n) for n, c in zip(vector, stage, strict=True) if n)
    return _Held(kept, losses, heads, chunks)


def moments(stage: Stage, in_flight: InFlight, kinds: Sequence[int]) -> list[Moment]:
    """List the moments that may be a rank's peak.

    While a layer runs backward, the loss of its micro-batch is gone; while the loss
    runs, all that the last chunk keeps is there; while the embedding runs backward,
    the first chunk has dropped one micro-batch.

    Parameters
    ----------
    stage
        The rank's chunks.
    in_flight
        For each chunk how many micro-batches are held, at every fullest moment.
    kinds
        Kinds of layer on the rank.
    """
    found: list[Moment] = []
    for vector in in_flight:
        held = _held(stage, vector)
        losses = held.losses
        before = max(losses - 1, 0)
        found += [_moment(held, before, f"layer {k} moment") for k in kinds]
        if losses:
            found.append(_moment(held, losses, "loss moment"))
        pairs = tuple(zip(stage, vector, strict=True))
        if any(chunk.embedding and count for chunk, count in pairs):
            one_less = tuple(count - chunk.embedding for chunk, count in pairs)
            fewer = _held(stage, one_less)
            found.append(_moment(fewer, fewer.losses, "embedding moment"))
        if not found:
            found.append(_moment(held, losses, None))
    return found
