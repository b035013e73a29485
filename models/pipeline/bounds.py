"""Lower bounds of the step time from stage times, never above the simulation.

Letters: n configurations, p ranks, v chunks a rank, m micro-batches, F and B forward
and backward seconds of a chunk, h seconds of one hop between stages, W the work of
a rank for one micro-batch. Stage ``c * p + r`` of the path is chunk c of rank r.

Each bound is the length of one path through the operations, so it is linear in the
stage times for fixed m and the largest of them is the best:

* a rank starts when the path before its chunk 0 has run, works m W without a
  pause, and then the backward of that path still has to run;
* a rank's first backward starts when all forwards of the path and the backwards
  after it have run once; what it has not worked by then follows, and again the
  backward of the path before it;
* with v = 1, a micro-batch that waits for the ranks after r returns to r every
  p - r micro-batches: the loop takes their work and its hops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import unknown_name
from .interleaving import forward_units, warm_up

if TYPE_CHECKING:
    from .arrays import Floats, Ints

BOUNDED = ("1f1b", "interleaved", "gpipe")


def step_time_bound(
    schedule: str,
    forward: Floats,
    backward: Floats,
    m: Ints | int,
    p2p: Floats | float = 0.0,
    group: int | None = None,
) -> Floats:
    """Return a time that the simulated step never undercuts.

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
        raise unknown_name("schedule with a bound", schedule, BOUNDED)
    m = np.broadcast_to(np.asarray(m, np.int64), forward.shape[:1])
    hop = np.broadcast_to(np.asarray(p2p, np.float64), forward.shape[:1])
    if schedule == "gpipe":
        return gpipe_time(forward, backward, m, hop)
    bounds = rank_bounds(schedule, forward, backward, m, hop, group)
    best: Floats = bounds.max(axis=(1, 2))
    return best


def gpipe_time(forward: Floats, backward: Floats, m: Ints, hop: Floats) -> Floats:
    """Return GPipe's step time, exact for any stages: two flow shops in turn."""
    pp, vpp = forward.shape[1:]
    assert vpp == 1, "GPipe has one chunk a rank"
    time: Floats = 2 * (pp - 1) * hop
    for work in (forward[..., 0], backward[..., 0]):
        time = time + work.sum(axis=1) + (m - 1) * work.max(axis=1)
    return time


def rank_bounds(
    schedule: str,
    forward: Floats,
    backward: Floats,
    m: Ints,
    hop: Floats,
    group: int | None = None,
) -> Floats:
    """Return the bounds of every rank, shape [n, pp, 2 or 3], in seconds.

    The last axis holds the bounds in the order of this module's description.
    """
    pp, vpp = forward.shape[1:]
    group = group or pp
    ranks = np.arange(pp)
    later = pp - 1 - ranks  # stages of the path after a rank's last chunk
    work = (forward + backward).sum(axis=2)
    hops = hop[:, None]
    path_f = _before(forward[..., 0]) + ranks * hops
    path_b = _before(backward[..., 0]) + ranks * hops
    total = m[:, None] * work
    start_to_end = path_f + total + path_b
    first = _first_forwards(schedule, pp, vpp, m, group)
    last_b = backward[..., -1]
    to_first_backward = (
        forward.sum(axis=(1, 2))[:, None]
        + (pp * vpp - 1 + later) * hops
        + _after(last_b)
    )
    worked = (first * forward).sum(axis=2)
    from_loss = to_first_backward + total - worked + path_b
    if vpp > 1 or schedule != "1f1b":
        return np.stack([start_to_end, from_loss], axis=2)
    loop = _after(work) + work + 2 * later * hops
    gain = np.maximum(loop - (later + 1) * work, 0.0)
    times = np.maximum((m[:, None] - 1 - later) // (later + 1), 0)
    return np.stack([start_to_end, from_loss, from_loss + times * gain], axis=2)


def _first_forwards(schedule: str, pp: int, vpp: int, m: Ints, group: int) -> Ints:
    """Count each rank's forwards of each chunk before its first backward."""
    if schedule == "1f1b":
        return np.minimum(pp - np.arange(pp), m[:, None])[..., None]
    # Rows share few numbers of micro-batches.
    distinct, row = np.unique(m, return_inverse=True)
    first = np.minimum(warm_up(pp, vpp, distinct, group) + 1, distinct[:, None] * vpp)
    return forward_units(first, vpp, distinct[:, None], group)[row]


def _before(times: Floats) -> Floats:
    """Sum over the ranks before each rank, shape [n, pp]."""
    total: Floats = np.cumsum(times, axis=1) - times
    return total


def _after(times: Floats) -> Floats:
    """Sum over the ranks after each rank, shape [n, pp]."""
    return _before(times[:, ::-1])[:, ::-1]
