"""Exact step times of the turn-taking schedules for any number of micro-batches.

Once a pipeline runs steadily, one more period (a group of micro-batches through all
chunks) repeats the period before, later by the same time for every slot of every
rank. A simulation of few micro-batches shows whether that is so, and then gives
every larger number exactly.

Why it is exact. Write f(r, u) and b(r, j) for the ends of rank r's forward unit u
and backward unit j, and w for its warm-up, at most w0. Before the drain each end is
a maximum of f(r - 1, u), f(p - 1, u - g), b(r, u - w - 1), or of b(r + 1, j),
b(0, j - g), f(r, j + w), plus a duration that repeats every period of P units. If
f(r, u + P) = f(r, u) + T for w0 + P units u in a row and b(r, j + P) = b(r, j) + T
for P units j, both from unit J on, for all ranks, then by induction so do all later
ones, as none looks further back. The drain, which starts after them, then runs the
same, later by T for every period more. Rounding does not grow: a maximum of sums
brings two sequences no further apart than they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import unknown_name
from .bounds import BOUNDED, gpipe_time
from .interleaving import warm_up
from .network import network
from .schedules import order
from .sweep import ends, times

if TYPE_CHECKING:
    from .arrays import Bools, Floats, Ints
    from .network import Network

#: Relative difference of two ends that count as equal: rounding of long sums.
_ROUNDING = 1e-12


def step_times(
    schedule: str,
    forward: Floats,
    backward: Floats,
    m: Ints | int,
    p2p: Floats | float = 0.0,
    group: int | None = None,
) -> Floats:
    """Return the simulated step time of every configuration.

    The same as `shardproof.models.pipeline.sweep.makespan` of each configuration's
    own order, at the cost of a few periods of micro-batches.

    Parameters
    ----------
    schedule
        ``1f1b``, ``interleaved`` or ``gpipe``.
    forward, backward
        Times of each chunk for one micro-batch, shape [n, pp, vpp], in seconds.
    m
        Micro-batches, shape [n] or one number.
    p2p
        Time of one hop from stage to stage, shape [n] or one number, in seconds.
    group
        Micro-batches in a group of the interleaved order; pp if not given.

    Returns
    -------
    Array
        Shape [n], in seconds.
    """
    if schedule not in BOUNDED:
        raise unknown_name("schedule that takes turns", schedule, BOUNDED)
    n, pp, _ = forward.shape
    m = np.broadcast_to(np.asarray(m, np.int64), (n,))
    hop = np.broadcast_to(np.asarray(p2p, np.float64), (n,))
    if schedule == "gpipe":
        return gpipe_time(forward, backward, m, hop)
    solve = _Steady(schedule, forward, backward, m, hop, group or pp)
    return solve.step_times()


class _Steady:
    """One call: rows with equal numbers of micro-batches are swept together."""

    def __init__(
        self,
        schedule: str,
        forward: Floats,
        backward: Floats,
        m: Ints,
        hop: Floats,
        group: int,
    ) -> None:
        self.schedule, self.m, self.hop = schedule, m, hop
        self.forward, self.backward, self.group = forward, backward, group
        self.pp, self.vpp = forward.shape[1:]
        # 1F1B with hops repeats after pp micro-batches, without after one.
        self.period = group if schedule == "interleaved" else self.pp
        self.warm = (
            warm_up(self.pp, self.vpp, 2**40, group)
            if schedule == "interleaved"
            else self.pp - 1 - np.arange(self.pp)
        )
        self.total = np.empty(len(m))

    def step_times(self) -> Floats:
        """Try few periods; double them for the rows that are not steady yet."""
        units_needed = int(self.warm[0]) + 2 * self.period * self.vpp
        periods = -(-units_needed // (self.period * self.vpp)) + 1
        left = np.arange(len(self.m))
        while len(left):
            short = np.minimum(
                self.m[left], self.m[left] % self.period + periods * self.period
            )
            kept = []
            for small in np.unique(short).tolist():
                rows = left[short == small]
                done = self._solve(rows, small)
                kept.append(rows[~done])
            left = np.concatenate(kept)
            periods *= 2
        return self.total

    def _solve(self, rows: Ints, small: int) -> Bools:
        """Fill the total of the rows that ``small`` micro-batches decide."""
        plan = order(self.schedule, self.pp, self.vpp, small, self.group)
        net = network(plan)
        more = (self.m[rows] - small) // self.period
        t = times(plan, self.forward[rows], self.backward[rows], p2p=self.hop[rows])
        done: Bools = more == 0
        ahead, back = self._unit_rows(net, small)
        for part, ended in ends(net, t):
            last = ended[net.last].max(axis=0)
            slack = _ROUNDING * last
            gain, steady = self._gain(ended, ahead, back, slack, small)
            done[part] |= steady
            self.total[rows[part]] = last + more[part] * gain
        return done

    def _unit_rows(self, net: Network, small: int) -> tuple[Ints, Ints]:
        """Return the network's row of every forward and backward unit, [pp, units]."""
        row = net.row.reshape(self.pp, -1)
        k = np.arange(small * self.vpp)
        warm = np.minimum(self.warm, len(k))[:, None]
        ahead = k + np.maximum(k - warm, 0)
        back = np.where(k < len(k) - warm, warm + 2 * k + 1, len(k) + k)
        forward: Ints = np.take_along_axis(row, ahead, 1)
        backward: Ints = np.take_along_axis(row, back, 1)
        return forward, backward

    def _gain(
        self, ended: Floats, ahead: Ints, back: Ints, slack: Floats, small: int
    ) -> tuple[Floats, Bools]:
        """Return what a period adds, shape [n], and whether it is the same for all."""
        size, count = self.period * self.vpp, small * self.vpp
        first = count - int(self.warm[0]) - 2 * size
        if first < 0:
            return np.zeros_like(slack), np.zeros(len(slack), bool)
        b = back[:, first : first + size]
        f = ahead[:, first : count - size]
        now, then = (
            np.concatenate([f, b], 1),
            np.concatenate(
                [ahead[:, first + size :], back[:, first + size : first + 2 * size]], 1
            ),
        )
        grown = ended[then.ravel()] - ended[now.ravel()]
        gain, least = grown.max(axis=0), grown.min(axis=0)
        return gain, gain - least <= slack
