"""What each rank holds slot by slot: whole activations, and inputs kept for W.

A chunk of a micro-batch is held in full from the start of its forward to the end of
its backward. Where the weight gradient runs later, what it needs (the inputs of the
linear layers) is held on, as a W-only state, to the end of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .order import B_CHUNK, F_CHUNK, W_CHUNK

if TYPE_CHECKING:
    from .arrays import Ints, Numbers
    from .order import Order


def held(order: Order) -> tuple[Ints, Ints]:
    """Count what is held while each slot runs.

    Returns
    -------
    tuple
        Micro-batches held in full and as W-only states, each of shape
        [slots, chunks].
    """
    forward, backward, weight = (
        order.slots[:, column] for column in (F_CHUNK, B_CHUNK, W_CHUNK)
    )
    full = _through(order, forward) - _until(order, backward)
    split_backward = np.where(weight < 0, backward, -1)
    split_weight = np.where(backward < 0, weight, -1)
    return full, _until(order, split_backward) - _until(order, split_weight)


def peak_bytes(order: Order, full: Numbers, w_only: Numbers | None = None) -> Numbers:
    """Return the most bytes of activations that each rank holds at one time.

    Parameters
    ----------
    full, w_only
        Bytes that one micro-batch keeps in a chunk, shape [n, pp, chunks]; W-only
        states weigh as much as full ones if not given.

    Returns
    -------
    Array
        Shape [n, pp], in bytes, of the type of ``full``.
    """
    whole, kept = held(order)
    w_only = full if w_only is None else w_only
    peaks = np.zeros((len(full), order.pp), full.dtype)
    for rank in range(order.pp):
        part = slice(order.starts[rank], order.starts[rank + 1])
        states = np.unique(np.hstack([whole[part], kept[part]]), axis=0)
        weights = np.hstack([full[:, rank], w_only[:, rank]])
        peaks[:, rank] = (weights @ states.T).max(axis=1)
    return peaks


def _marks(order: Order, chunk: Ints) -> Ints:
    """Mark the chunk that each slot runs, shape [slots, chunks]."""
    marks: Ints = (chunk[:, None] == np.arange(order.chunks)).astype(np.int64)
    return marks


def _through(order: Order, chunk: Ints) -> Ints:
    """Count each rank's runs of every chunk up to each slot, its own included."""
    total = np.cumsum(_marks(order, chunk), axis=0)
    before = np.vstack([np.zeros((1, order.chunks), np.int64), total])
    counts: Ints = total - before[order.starts[:-1]][order.rank]
    return counts


def _until(order: Order, chunk: Ints) -> Ints:
    """Count the same, its own left out."""
    return _through(order, chunk) - _marks(order, chunk)
