"""The moments of a rank that may be its peak, in names of components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..stages import Chunk, Stage

InFlight = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Moment:
    """Components alive between forward and backward pass, and one that comes and goes.

    ``kept`` gives for each component how often it is alive.
    """

    kept: tuple[tuple[str, int], ...]
    transient: str | None


def _moment(
    kept: Mapping[str, int], losses: int, heads: int, transient: str | None
) -> Moment:
    whole = dict(kept)
    if losses:
        whole["final norm"] = losses
        whole["loss"] = losses * heads
    return Moment(tuple(whole.items()), transient)


def _chunk(chunk: Chunk) -> Iterator[tuple[str, int]]:
    """Yield the components a micro-batch keeps in a chunk, the loss apart."""
    for index, count in enumerate(chunk.layers):
        if count:
            yield f"layer {index}", count
    if chunk.mtp:
        yield "mtp", chunk.mtp
    if chunk.embedding:
        yield "embedding", 1


def _held(stage: Stage, vector: tuple[int, ...]) -> tuple[dict[str, int], int, int]:
    """Return what layers and embedding keep, losses alive, and heads of each."""
    kept: dict[str, int] = {"model": 1}
    losses = heads = 0
    for count, chunk in zip(vector, stage, strict=True):
        for name, times in _chunk(chunk):
            kept[name] = kept.get(name, 0) + count * times
        if chunk.head:
            losses, heads = count, 1 + chunk.mtp
    return kept, losses, heads


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
        kept, losses, heads = _held(stage, vector)
        before = max(losses - 1, 0)
        found += [_moment(kept, before, heads, f"layer {k} moment") for k in kinds]
        if losses:
            found.append(_moment(kept, losses, heads, "loss moment"))
        pairs = tuple(zip(stage, vector, strict=True))
        if any(chunk.embedding and count for chunk, count in pairs):
            one_less = tuple(count - chunk.embedding for chunk, count in pairs)
            found.append(_moment(*_held(stage, one_less), "embedding moment"))
        if not found:
            found.append(_moment(kept, losses, heads, None))
    return found
