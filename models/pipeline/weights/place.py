"""Weight gradients placed by CP-SAT: the fastest order within given memory.

Forwards, backwards and weight gradients of every micro-batch are intervals that do
not overlap on a rank; what a rank holds never exceeds its limit. The incumbent is
simulated with the times as given; the bound comes from times rounded down, so it is
never above the best order's time.

Source of the problem: Qi et al. 2023, "Zero Bubble Pipeline Parallelism", the
integer program of its automatic schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from ..order import order_of, run_b, run_f, run_w
from ..placement import placement
from ..schedules import order as known_order
from .listing import list_schedule
from .model import WeightModel
from .task import WeightTask

if TYPE_CHECKING:
    from ..arrays import Floats, Ints
    from ..order import Order, Slot


@dataclass(frozen=True, eq=False)
class PlacedWeights:
    """The fastest order found, and what was proven of it.

    Attributes
    ----------
    order
        What every rank runs.
    makespan
        Its simulated step time, in seconds.
    bound
        No order within the memory is faster, in seconds.
    """

    order: Order
    makespan: float
    bound: float

    @property
    def gap(self) -> float:
        """Share of the makespan that may still be saved."""
        return max(self.makespan - self.bound, 0.0) / self.makespan


def place_weights(
    m: int,
    forward: Floats,
    backward: Floats,
    weight: Floats,
    full: Ints,
    w_only: Ints,
    limit: Ints,
    p2p: float = 0.0,
    seconds: float = 10.0,
) -> PlacedWeights:
    """Find an order of one chunk a rank that is as fast as memory allows.

    Parameters
    ----------
    m
        Micro-batches of a step.
    forward, backward, weight
        Times of each rank for one micro-batch, shape [pp], in seconds.
    full, w_only
        Bytes that a micro-batch keeps from forward to backward, and from there to
        its weight gradient, shape [pp].
    limit
        Bytes that each rank can hold, shape [pp].
    p2p
        Time of one hop, in seconds.
    seconds
        Time for the search.

    Returns
    -------
    PlacedWeights
        The order, its simulated time and the bound.

    Raises
    ------
    InputError
        If a rank cannot hold one micro-batch.
    """
    task = WeightTask(m, forward, backward, weight, p2p, full, w_only, limit)
    short = np.flatnonzero(np.maximum(full, w_only) > limit)
    if len(short):
        rank = int(short[0])
        need = int(max(full[rank], w_only[rank]))
        raise InputError(
            f"a rank must hold one micro-batch: rank {rank} needs {need:,} bytes and "
            f"may hold {int(limit[rank]):,}; raise the limit or shrink the micro-batch"
        )
    best = min(_candidates(task), key=task.makespan)
    model = WeightModel(task, horizon=task.makespan(best))
    found, bound = model.solve(task.starts(best), seconds)
    if found is not None and task.makespan(found) < task.makespan(best):
        best = found
    return PlacedWeights(best, task.makespan(best), bound)


def _candidates(task: WeightTask) -> list[Order]:
    """Return orders that fit: 1F1B of short warm-up, list schedules, zero-bubble."""
    orders = [_short_warm_up(task)]
    orders += [list_schedule(task, patience) for patience in (0.0, 0.5, 1.0)]
    for name in ("zb-h1", "zb-h2"):
        order = known_order(name, task.pp, 1, task.m)
        if task.fits(order):
            orders.append(order)
    return orders


def _short_warm_up(task: WeightTask) -> Order:
    """1F1B that warms up no longer than memory allows, each W behind its B."""
    ranks, warm = [], task.m
    for rank in range(task.pp):
        held = int(task.limit[rank] // max(int(task.full[rank]), 1))
        warm = min(warm, task.pp - 1 - rank, held - 1)
        slots: list[Slot] = [run_f(0, k) for k in range(warm)]
        for k in range(task.m):
            slots += [run_f(0, warm + k)] if warm + k < task.m else []
            slots += [run_b(0, k), run_w(0, k)]
        ranks.append(slots)
    return order_of("ilp", task.m, placement("loop", task.pp, 1), ranks)
