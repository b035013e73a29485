"""One simulated step as a value that reports and traces draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .held import held
from .network import NEVER, SLOTS, START, network
from .order import B_CHUNK, F_CHUNK, W_CHUNK
from .sweep import ends, times

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .arrays import Floats, Ints, Numbers
    from .network import Network
    from .order import Order


@dataclass(frozen=True)
class Event:
    """One slot in time.

    Attributes
    ----------
    rank
        The rank that runs it.
    start, end
        In seconds from the start of the step.
    forward, backward, weight
        Chunk and micro-batch of what the slot runs, None where it runs none.
    """

    rank: int
    start: float
    end: float
    forward: tuple[int, int] | None
    backward: tuple[int, int] | None
    weight: tuple[int, int] | None

    @property
    def label(self) -> str:
        """Name of the operation: F, B, W, BW, or F&BW for an overlapped pair."""
        back = "B" * (self.backward is not None) + "W" * (self.weight is not None)
        return "&".join(filter(None, ["F" if self.forward else "", back]))


@dataclass(frozen=True, eq=False)
class Timeline:
    """A simulated step of one configuration.

    Attributes
    ----------
    order
        What was run.
    start, end
        Of every slot of the order, shape [slots], in seconds.
    critical
        Slots of one path that determines the makespan, first to last.
    """

    order: Order
    start: Floats
    end: Floats
    critical: tuple[int, ...]

    @property
    def makespan(self) -> float:
        """Time from the first start to the last end, in seconds."""
        return float(self.end.max())

    @property
    def busy(self) -> Floats:
        """Time that each rank works, shape [pp], in seconds."""
        took = self.end - self.start
        work: Floats = np.add.reduceat(took, self.order.starts[:-1])
        return work

    @property
    def idle(self) -> Floats:
        """Time that each rank does not work, shape [pp], in seconds."""
        return self.makespan - self.busy

    def events(self) -> Iterator[Event]:
        """Yield all slots, rank after rank, each in order of time."""
        for i, slot in enumerate(self.order.slots.tolist()):
            pairs = [
                (slot[c], slot[c + 1]) if slot[c] >= 0 else None
                for c in (F_CHUNK, B_CHUNK, W_CHUNK)
            ]
            start, end = float(self.start[i]), float(self.end[i])
            yield Event(int(self.order.rank[i]), start, end, *pairs)

    def bytes_over_time(
        self, full: Numbers, w_only: Numbers | None = None
    ) -> list[tuple[Floats, Numbers]]:
        """Return for each rank when what it holds changes, and to how much.

        Parameters
        ----------
        full, w_only
            Bytes that one micro-batch keeps in a chunk, shape [pp, chunks]; W-only
            states weigh as much as full ones if not given.

        Returns
        -------
        list
            For each rank times in seconds and bytes from then on; the last time is
            the end of its last slot, from when it holds nothing.
        """
        whole, kept = held(self.order)
        w_only = full if w_only is None else w_only
        rank = self.order.rank
        size = (whole * full[rank] + kept * w_only[rank]).sum(axis=1)
        over_time = []
        for r in range(self.order.pp):
            part = slice(self.order.starts[r], self.order.starts[r + 1])
            when = np.append(self.start[part], self.end[part][-1])
            over_time.append((when, np.append(size[part], 0)))
        return over_time


def timeline(
    order: Order,
    forward: Floats,
    backward: Floats,
    weight: Floats | None = None,
    p2p: float = 0.0,
    pair: Floats | None = None,
) -> Timeline:
    """Simulate one configuration and keep every slot's time.

    Parameters
    ----------
    forward, backward, weight, pair
        Times as in `shardproof.models.pipeline.sweep.Times`, without the axis n.
    """
    t = times(order, forward, backward, weight, p2p, pair)
    net = network(order)
    _, table = next(ends(net, t))
    ended = table[:, 0].copy()
    came = np.maximum(ended[net.before], _arrivals(net.needs, net.hops, ended, p2p))
    start = came[net.row - SLOTS]
    return Timeline(order, start, ended[net.row], _critical(net, ended, p2p))


def _arrivals(needs: Ints, hops: Ints, ended: Floats, p2p: float) -> Floats:
    """Return when what each row needs is there, shape [rows]."""
    arrivals: Floats = (ended[needs] + hops * p2p).max(axis=1)
    return arrivals


def _critical(net: Network, ended: Floats, p2p: float) -> tuple[int, ...]:
    """Walk back from the last end to what each slot had to wait for."""
    slot_of = np.empty(len(net.row), np.int64)
    slot_of[net.row - SLOTS] = np.arange(len(net.row))
    row = int(net.last[ended[net.last].argmax()])
    path = [row]
    while True:
        i = row - SLOTS
        causes = [int(net.before[i]), *map(int, net.needs[i])]
        arrive = [ended[causes[0]], *(ended[net.needs[i]] + net.hops[i] * p2p)]
        row = causes[int(np.argmax(arrive))]
        if row in (START, NEVER):
            return tuple(int(slot_of[r - SLOTS]) for r in reversed(path))
        path.append(row)
