"""How Megatron interleaves micro-batches over the chunks of a rank.

Letters: p ranks, r a rank, m micro-batches, v chunks a rank, g micro-batches of a
group. A *unit* is one micro-batch in one chunk. Every rank runs the same sequence of
forward units: group after group, in a group chunk after chunk, in a chunk the
group's micro-batches; the last group may be smaller. Backward units follow the same
sequence with the chunks from last to first.

Source: Megatron-LM megatron/core/pipeline_parallel/schedules.py,
get_schedule_table and get_pp_rank_microbatches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .arrays import Ints


def warm_up(pp: int, vpp: int, m: Ints | int, group: int, extra: int = 0) -> Ints:
    """Return how many forward units each rank runs before its steady state.

    Parameters
    ----------
    pp, vpp, group
        Ranks, chunks a rank, micro-batches a group.
    m
        Micro-batches, shape [n] or a number.
    extra
        1 where the expert-parallel all-to-all is overlapped, else 0.

    Returns
    -------
    Array
        Units, shape [n, pp], or [pp] for one number of micro-batches.
    """
    ranks = np.arange(pp)
    wanted = 2 * (pp - 1 - ranks) + (vpp - 1) * group + extra
    units: Ints = np.minimum(wanted, np.asarray(m)[..., None] * vpp)
    return units


def forward_units(done: Ints, vpp: int, m: Ints | int, group: int) -> Ints:
    """Count, chunk by chunk, the first forward units of the sequence.

    Parameters
    ----------
    done
        How many units were run, any shape.
    m
        Micro-batches, of a shape that broadcasts against ``done``.

    Returns
    -------
    Array
        Units run of each chunk, shape of ``done`` with a last axis of vpp.
    """
    full = np.asarray(m) // group
    groups = np.minimum(done // (group * vpp), full)
    size = np.where(groups < full, group, np.asarray(m) - full * group)[..., None]
    rest = (done - groups * group * vpp)[..., None] - np.arange(vpp) * size
    units: Ints = groups[..., None] * group + np.clip(rest, 0, size)
    return units


def runs(vpp: int, m: int, group: int) -> Ints:
    """Return where the sequence changes chunk, as numbers of units run."""
    full, rest = divmod(m, group)
    sizes = [group] * (full * vpp) + ([rest] * vpp if rest else [])
    return np.cumsum([0, *sizes])


def units(vpp: int, m: int, group: int) -> tuple[Ints, Ints]:
    """Return chunk and micro-batch of every forward unit, each of shape [m * vpp]."""
    done = forward_units(np.arange(m * vpp + 1), vpp, m, group)
    chunk = np.diff(done, axis=0).argmax(axis=1)
    return chunk, done[np.arange(m * vpp), chunk]
