"""Times of chunks from times of their parts, and stages laid onto a placement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..stages import Chunk, Stage
    from .arrays import Floats
    from .placement import Placement


@dataclass(frozen=True, eq=False)
class PartTimes:
    """Times of one pass for one micro-batch, by part of the model, in seconds.

    One value for each of forward, backward and weight gradient; recomputation is
    part of the backward.

    Attributes
    ----------
    layers
        Of a decoder layer of each kind, shape [n, kinds].
    embedding, head, mtp
        Of the input embedding, of the output head with the loss, and of one
        multi-token-prediction layer, shape [n].
    """

    layers: Floats
    embedding: Floats
    head: Floats
    mtp: Floats

    def of_chunk(self, chunk: Chunk) -> Floats:
        """Return the time of a chunk, shape [n], in seconds."""
        time: Floats = self.layers @ np.asarray(chunk.layers, np.float64)
        return (
            time
            + chunk.mtp * self.mtp
            + chunk.embedding * self.embedding
            + chunk.head * self.head
        )


def chunk_times(stages: Sequence[Stage], parts: PartTimes) -> Floats:
    """Return the time of every chunk of every rank, shape [n, pp, vpp], in seconds.

    ``stages`` are those of a split family or an explicit layout; a chunk may be
    empty.
    """
    rows = [[parts.of_chunk(chunk) for chunk in stage] for stage in stages]
    return np.moveaxis(np.array(rows), 2, 0)


def on_ranks(along_path: Floats, placement: Placement) -> Floats:
    """Lay values of stages, in the order of the path, onto ranks and chunks.

    Parameters
    ----------
    along_path
        Shape [n, stages]; where two directions meet, both paths hold these stages.

    Returns
    -------
    Array
        Shape [n, pp, chunks].
    """
    laid = np.empty((len(along_path), placement.pp, placement.chunks))
    for path in placement.paths:
        rank, chunk = np.array(path).T
        laid[:, rank, chunk] = along_path
    return laid


def hop_time(
    size: Floats | float, latency: Floats | float, bandwidth: Floats | float
) -> Floats:
    """Return the time of sending a stage's output to the next, in seconds.

    Parameters
    ----------
    size
        Bytes of one micro-batch's activations on one device.
    latency
        Of a message, in seconds.
    bandwidth
        Of the link one way, in bytes per second.
    """
    return np.asarray(latency + np.asarray(size, np.float64) / bandwidth)
