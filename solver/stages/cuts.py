"""Cuts: paths through the operations of a pipeline, each a bound of its time.

The order of operations is fixed by the schedule, so every path through it is a lower
bound of the time of every stage plan, linear in the times of chunks. The closed
families of `shardproof.models.pipeline.bounds` start; the critical path of each
simulated plan follows, which is exact at that plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...models.pipeline.bounds import rank_bounds
from ...models.pipeline.network import SLOTS, network
from ...models.pipeline.schedules import order
from ...models.pipeline.sweep import ends
from ...models.pipeline.sweep import times as sweep_times

if TYPE_CHECKING:
    import numpy.typing as npt

    from ...models.pipeline.network import Network
    from .times import StepTimes

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

#: Slots of an order above which critical paths are not looked for.
MOST_SLOTS = 400_000


@dataclass(frozen=True, eq=False)
class Cut:
    """One path: how often it runs each chunk's passes, and how often it hops.

    Attributes
    ----------
    forward, backward
        Shape [pp, vpp].
    hops
        Messages from stage to stage.
    """

    forward: Ints
    backward: Ints
    hops: int

    def time(self, forward: Floats, backward: Floats, hop: float) -> Floats:
        """Return the path's time for chunk times of shape [n, pp, vpp], in seconds."""
        ahead, back = self.forward * forward, self.backward * backward
        total: Floats = ahead.sum(axis=(1, 2)) + back.sum(axis=(1, 2)) + self.hops * hop
        return total

    @property
    def key(self) -> bytes:
        """The same for equal paths."""
        return self.forward.tobytes() + self.backward.tobytes()


def closed_cuts(times: StepTimes) -> list[Cut]:
    """Return the closed bounds of every rank as paths.

    They are linear, so that their values at unit times are their counts. With one
    chunk a rank the third one is linear where the loop gains, and is written out.
    """
    layout = times.layout
    pp, vpp, m = layout.pp, layout.vpp, layout.m
    if pp * vpp == 1:
        one = np.full((1, 1), m)
        return [Cut(one, one, 0)]
    if times.schedule == "gpipe":
        return [_flow_shop(pp, m, f, b) for f in range(pp) for b in range(pp)]
    size = pp * vpp
    unit = np.zeros((2 * size + 1, 2, pp, vpp))
    unit.reshape(2 * size + 1, -1)[np.arange(2 * size), np.arange(2 * size)] = 1.0
    hop = np.zeros(2 * size + 1)
    hop[-1] = 1.0
    many = np.full(len(hop), m)
    found = rank_bounds(times.schedule, unit[:, 0], unit[:, 1], many, hop)
    counts = np.rint(found[..., :2]).astype(np.int64)
    cuts = []
    for rank in range(pp):
        for family in range(2):
            cuts.append(_cut(counts[:, rank, family], pp, vpp))
        if vpp == 1 and times.schedule == "1f1b":
            cuts.append(_loop(cuts[-1], rank, pp, m))
    return list({cut.key: cut for cut in cuts}.values())


def _cut(counts: Ints, pp: int, vpp: int) -> Cut:
    size = pp * vpp
    ahead, back = counts[:size], counts[size : 2 * size]
    return Cut(ahead.reshape(pp, vpp), back.reshape(pp, vpp), int(counts[-1]))


def _loop(from_loss: Cut, rank: int, pp: int, m: int) -> Cut:
    """Let micro-batches wait for the ranks after this one again and again."""
    later = pp - 1 - rank
    times = max((m - 1 - later) // (later + 1), 0)
    more = np.zeros((pp, 1), np.int64)
    more[rank:] = times
    more[rank] -= times * (later + 1)
    return Cut(
        from_loss.forward + more,
        from_loss.backward + more,
        from_loss.hops + times * 2 * later,
    )


def _flow_shop(pp: int, m: int, forward: int, backward: int) -> Cut:
    """Return a path of GPipe: all ranks once, one of them for every micro-batch."""
    counts = np.ones((2, pp, 1), np.int64)
    counts[0, forward] = counts[1, backward] = m
    return Cut(counts[0], counts[1], 2 * (pp - 1))


def critical_cuts(times: StepTimes, forward: Floats, backward: Floats) -> list[Cut]:
    """Return the critical paths of many plans, each once; none where it takes long.

    Parameters
    ----------
    forward, backward
        Times of chunks, shape [n, pp, vpp], in seconds.
    """
    layout = times.layout
    pp, vpp = layout.pp, layout.vpp
    slots = 2 * pp * vpp * layout.m
    if pp * vpp == 1 or times.schedule == "gpipe" or slots > MOST_SLOTS:
        return []
    plan = order(times.schedule, pp, vpp, layout.m)
    net = network(plan)
    given = sweep_times(plan, forward, backward, p2p=times.hop)
    found: dict[bytes, Cut] = {}
    for _, ended in ends(net, given):
        for cut in _walk(net, ended, times.hop, (pp, vpp)):
            found.setdefault(cut.key, cut)
    return list(found.values())


def _walk(net: Network, ended: Floats, hop: float, shape: tuple[int, int]) -> list[Cut]:
    """Walk back from the last end of every plan, all plans a slot at a time."""
    n, (pp, vpp) = ended.shape[1], shape
    plans = np.arange(n)
    row = net.last[ended[net.last].argmax(axis=0)]
    passes = np.zeros((n, 2, pp * vpp), np.int64)
    hops = np.zeros(n, np.int64)
    kinds = net.kinds[net.kind]
    ahead = kinds[:, 1] >= 0
    cell = kinds[:, 0] * vpp + np.where(ahead, kinds[:, 1], kinds[:, 2])
    causes = np.concatenate([net.before[:, None], net.needs], axis=1)
    crosses = np.concatenate([np.zeros_like(net.before)[:, None], net.hops], axis=1)
    while len(plans):
        i = row - SLOTS
        passes[plans, np.where(ahead[i], 0, 1), cell[i]] += 1
        came = ended[causes[i], plans[:, None]] + crosses[i] * hop
        best = came.argmax(axis=1)
        hops[plans] += crosses[i, best]
        row = causes[i, best]
        going = row >= SLOTS
        hops[plans[~going]] -= crosses[i, best][~going]
        plans, row = plans[going], row[going]
    laid = passes.reshape(n, 2, pp, vpp)
    return [Cut(p[0], p[1], int(h)) for p, h in zip(laid, hops, strict=True)]
