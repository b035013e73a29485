"""The event simulation: when every slot of every configuration ends.

Letters: n configurations, p ranks, c chunks of a rank.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from .network import NEVER, SLOTS, Network, network

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .arrays import Floats
    from .order import Order

#: Configurations swept together: a level of 16 ranks then fits the first cache.
_TOGETHER = 128
#: Most ends kept at a time, over all rows and configurations swept together: 128 MB.
_ENDS = 2**24


@dataclass(frozen=True, eq=False)
class Times:
    """How long everything takes, in seconds.

    Attributes
    ----------
    forward, backward
        Of each chunk for one micro-batch, shape [n, pp, chunks]. Without
        ``weight``, ``backward`` is the full backward.
    weight
        Weight gradients of each chunk, shape [n, pp, chunks], or None where the
        schedule does not split the backward.
    hop
        From a stage to one on another rank, shape [n].
    pair
        A forward of one chunk (third axis) overlapped with a full backward of
        another (fourth axis), shape [n, pp, chunks, chunks]; None for their sum.
    """

    forward: Floats
    backward: Floats
    weight: Floats | None
    hop: Floats
    pair: Floats | None


def times(
    order: Order,
    forward: Floats,
    backward: Floats,
    weight: Floats | None = None,
    p2p: Floats | float = 0.0,
    pair: Floats | None = None,
) -> Times:
    """Check shapes against an order; one configuration may leave out the axis n.

    Raises
    ------
    InputError
        If a shape is wrong, a time is negative or not finite, or the schedule
        splits the backward and no weight-gradient times are given.
    """
    if order.split and weight is None:
        raise InputError(
            f"{order.schedule} runs weight gradients apart: give their times, got none"
        )
    forward = _shaped("forward", forward, order)
    hop = np.broadcast_to(np.asarray(p2p, np.float64), forward.shape[:1])
    if not (np.isfinite(hop).all() and (hop >= 0).all()):
        raise InputError("p2p must be finite and at least 0 seconds")
    if pair is not None:
        pair = np.asarray(pair, np.float64)
        pair = pair[None] if pair.ndim == 3 else pair
    return Times(
        forward=forward,
        backward=_shaped("backward", backward, order),
        weight=None if weight is None else _shaped("weight", weight, order),
        hop=hop,
        pair=pair,
    )


def _shaped(name: str, given: Floats, order: Order) -> Floats:
    given = np.asarray(given, np.float64)
    given = given[None] if given.ndim == 2 else given
    if given.ndim != 3 or given.shape[1:] != (order.pp, order.chunks):
        raise InputError(
            f"{name} times must have shape [n, pp, chunks] = "
            f"[n, {order.pp}, {order.chunks}], got {list(given.shape)}"
        )
    if not (np.isfinite(given).all() and (given >= 0).all()):
        raise InputError(f"{name} times must be finite and at least 0 seconds")
    return given


def durations(net: Network, t: Times) -> Floats:
    """Return the time of every kind of slot, shape [kinds, n], in seconds."""
    rank, *chunks = net.kinds.T
    total = np.zeros((len(rank), len(t.forward)))
    for table, chunk in zip((t.forward, t.backward, t.weight), chunks, strict=True):
        if table is not None:
            total += np.where(chunk >= 0, table[:, rank, chunk], 0.0).T
    if t.pair is not None:
        both = (chunks[0] >= 0) & (chunks[1] >= 0)
        total[both] = t.pair[:, rank[both], chunks[0][both], chunks[1][both]].T
    return total


def ends(net: Network, t: Times) -> Iterator[tuple[slice, Floats]]:
    """Yield, some configurations at a time, when every row ends.

    Yields
    ------
    tuple
        Which configurations, and their ends, shape [rows, n of these], in
        seconds. The array is reused: copy what must last.
    """
    n = len(t.forward)
    took = durations(net, t)
    rows = int(net.bounds[-1])
    together = max(min(n, _TOGETHER, _ENDS // rows), 1)
    table = np.empty((rows, together))
    for start in range(0, n, together):
        part = slice(start, min(start + together, n))
        ended = table[:, : part.stop - part.start]
        if ended.shape != table.shape:
            ended = np.ascontiguousarray(ended)
        _sweep(net, np.ascontiguousarray(took[:, part]), t.hop[part], ended)
        yield part, ended


def _sweep(net: Network, took: Floats, hop: Floats, ended: Floats) -> None:
    """Fill ``ended``, level by level."""
    ended[:SLOTS] = 0.0
    ended[NEVER] = -np.inf
    width = int(np.diff(net.bounds).max(initial=0))
    begin, arrive = np.empty((2, width, ended.shape[1]))
    hops = bool(hop.any())
    always = bool(net.hops[net.needs != NEVER].all())
    bounds = net.bounds.tolist()
    for a, b in itertools.pairwise(bounds):
        x, y = begin[: b - a], arrive[: b - a]
        rows = slice(a - SLOTS, b - SLOTS)
        np.take(ended, net.before[rows], 0, out=x, mode="clip")
        for side in range(net.needs.shape[1]):
            np.take(ended, net.needs[rows, side], 0, out=y, mode="clip")
            if hops:
                y += hop if always else net.hops[rows, side, None] * hop
            np.maximum(x, y, out=x)
        np.take(took, net.kind[rows], 0, out=y, mode="clip")
        np.add(x, y, out=ended[a:b])


def makespan(
    order: Order,
    forward: Floats,
    backward: Floats,
    weight: Floats | None = None,
    p2p: Floats | float = 0.0,
    pair: Floats | None = None,
) -> Floats:
    """Return the time of a step without anything else, shape [n], in seconds.

    Parameters are those of `times`; see `Times` for shapes.
    """
    t = times(order, forward, backward, weight, p2p, pair)
    net = network(order)
    total = np.empty(len(t.forward))
    for part, ended in ends(net, t):
        total[part] = ended[net.last].max(axis=0)
    return total


@dataclass(frozen=True, eq=False)
class Result:
    """Simulated steps of many configurations.

    Attributes
    ----------
    makespan
        Time of the step, shape [n], in seconds.
    busy
        Time that each rank works, shape [n, pp], in seconds.
    """

    makespan: Floats
    busy: Floats

    @property
    def idle(self) -> Floats:
        """Time that each rank does not work, shape [n, pp], in seconds."""
        idle: Floats = self.makespan[:, None] - self.busy
        return idle

    @property
    def bubble(self) -> Floats:
        """Share of all ranks' time that is idle, shape [n]."""
        share: Floats = self.idle.mean(axis=1) / self.makespan
        return share


def simulate(
    order: Order,
    forward: Floats,
    backward: Floats,
    weight: Floats | None = None,
    p2p: Floats | float = 0.0,
    pair: Floats | None = None,
) -> Result:
    """Simulate many configurations at once.

    Parameters
    ----------
    forward, backward, weight, p2p, pair
        Times as in `Times`; one configuration may leave out the axis n.
    """
    t = times(order, forward, backward, weight, p2p, pair)
    net = network(order)
    total = np.empty(len(t.forward))
    for part, ended in ends(net, t):
        total[part] = ended[net.last].max(axis=0)
    runs = np.bincount(net.kind, minlength=len(net.kinds))
    work = durations(net, t) * runs[:, None]
    busy = np.zeros((order.pp, len(total)))
    np.add.at(busy, net.kinds[:, 0], work)
    return Result(total, busy.T)
