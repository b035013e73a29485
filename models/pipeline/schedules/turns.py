"""GPipe, 1F1B and interleaved 1F1B: warm up, take turns, drain.

Sources: Huang et al. 2019 (GPipe); Narayanan et al. 2021 and Megatron-LM
megatron/core/pipeline_parallel/schedules.py (1F1B, interleaved).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..interleaving import units, warm_up
from ..order import Order
from ..placement import placement

if TYPE_CHECKING:
    from ..arrays import Ints


def gpipe(pp: int, m: int) -> Order:
    """All forwards, then all backwards."""
    return _take_turns("gpipe", pp, 1, m, pp, np.full(pp, m))


def one_f_one_b(pp: int, m: int) -> Order:
    """Rank r runs pp - 1 - r forwards, then a forward and a backward in turn."""
    return _take_turns("1f1b", pp, 1, m, pp, np.minimum(pp - 1 - np.arange(pp), m))


def interleaved(pp: int, vpp: int, m: int, group: int, extra: int = 0) -> Order:
    """Megatron's interleaved order; ``extra`` warm-up units if an overlap asks."""
    first = warm_up(pp, vpp, m, group, extra)
    return _take_turns("interleaved", pp, vpp, m, group, first)


def _take_turns(
    schedule: str, pp: int, vpp: int, m: int, group: int, first: Ints
) -> Order:
    """Run ``first`` forward units, then one unit of each kind in turn, then drain."""
    chunk, micro = units(vpp, m, group)
    total = len(chunk)
    k = np.arange(total)
    warm = first[:, None]
    position_f = k + np.maximum(k - warm, 0)
    position_b = np.where(k < total - warm, warm + 2 * k + 1, total + k)
    slots = np.full((pp, 2 * total, 6), -1, np.int64)
    rows = np.arange(pp)[:, None]
    slots[rows, position_f, 0:2] = np.stack([chunk, micro], axis=1)
    back = np.stack([vpp - 1 - chunk, micro], axis=1)
    slots[rows, position_b, 2:4] = back
    slots[rows, position_b, 4:6] = back
    starts = np.arange(pp + 1) * 2 * total
    return Order(
        schedule, m, placement("loop", pp, vpp), slots.reshape(-1, 6), starts, False
    )
