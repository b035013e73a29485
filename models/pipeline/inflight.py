"""What each rank holds while a schedule runs, without simulating it.

A micro-batch is held in a chunk from the start of its forward to the end of its
backward. What is held depends on the order of a rank's operations alone, not on how
long they take.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..errors import unknown_name
from .held import held
from .interleaving import forward_units, runs, warm_up
from .schedules import NAMES, order

if TYPE_CHECKING:
    from .arrays import Ints
    from .order import Order

Vectors = tuple[tuple[int, ...], ...]


def saturation(schedule: str, pp: int, vpp: int, group: int | None = None) -> int:
    """Return the number of micro-batches from which what is held stays the same.

    Holds for numbers that leave the same remainder by ``group``; GPipe never
    saturates and gets a number above any batch.
    """
    if schedule == "1f1b":
        return pp
    if schedule == "gpipe":
        return 2**62
    if schedule == "interleaved":
        group = group or pp
        period = group * vpp
        longest = 2 * (pp - 1) + (vpp - 1) * group
        return group * -(-(longest + period) // period)
    if schedule in NAMES:
        return 2 * pp  # seen in every order, and held by the tests
    raise unknown_name("schedule", schedule, NAMES)


def in_flight(
    schedule: str, pp: int, vpp: int, m: int, group: int | None = None
) -> tuple[Vectors, ...]:
    """Return for each rank the largest loads of micro-batches held at one time.

    Parameters
    ----------
    schedule
        One of `shardproof.models.pipeline.schedules.NAMES`. Where weight gradients
        run apart, a micro-batch is held to the end of its weight gradient.
    m
        Micro-batches of a step.
    group
        Micro-batches in a group of the interleaved order; pp if not given.

    Returns
    -------
    tuple
        For each rank, vectors of one count a chunk. Whatever a micro-batch weighs
        in each chunk, the heaviest moment of the rank is among them: a moment that
        lies between two others, or below another, is left out.

    Raises
    ------
    InputError
        If the schedule is unknown or cannot run this shape.

    Notes
    -----
    Once every rank runs its steady state, moments repeat from group to group, so a
    large ``m`` is answered by the smallest one that repeats.
    """
    enough = saturation(schedule, pp, vpp, group)
    if m > enough:
        m = enough + (m % (group or pp) if schedule == "interleaved" else 0)
    return _in_flight(schedule, pp, vpp, m, group or pp)


@lru_cache(maxsize=4096)
def _in_flight(
    schedule: str, pp: int, vpp: int, m: int, group: int
) -> tuple[Vectors, ...]:
    if schedule == "1f1b":
        return tuple(((min(pp - r, m),) * vpp,) for r in range(pp))
    if schedule == "gpipe":
        return (((m,) * vpp,),) * pp
    if schedule == "interleaved":
        return _interleaved(pp, vpp, m, group)
    return _counted(order(schedule, pp, vpp, m))


def _interleaved(pp: int, vpp: int, m: int, group: int) -> tuple[Vectors, ...]:
    """Take the moments at which a rank changes the chunk it runs.

    With ``first`` the forward units before the first backward, after k forward
    units k - first backward ones are done. Between two changes of chunk each step
    adds a unit of one chunk and removes one of another: moments lie on a line, and
    none but its ends can be heaviest. All moments hold ``first`` units, so none is
    below another.
    """
    first = np.minimum(warm_up(pp, vpp, m, group) + 1, m * vpp)[:, None]
    changes = runs(vpp, m, group)[None, :]
    moments = np.concatenate(
        [first, np.full((pp, 1), m * vpp), changes + 0 * first, changes + first], axis=1
    )
    moments = np.clip(moments, first, m * vpp)
    forward = forward_units(moments, vpp, m, group)
    backward = forward_units(moments - first, vpp, m, group)[..., ::-1]
    return tuple(_ends(held) for held in forward - backward)


def _counted(plan: Order) -> tuple[Vectors, ...]:
    """Count what every slot of an order holds and keep what nothing exceeds."""
    loads = np.add(*held(plan))
    per_rank = []
    for rank in range(plan.pp):
        seen = np.unique(loads[plan.starts[rank] : plan.starts[rank + 1]], axis=0)
        within = (seen[:, None] <= seen[None]).all(axis=2)
        largest = seen[within.sum(axis=1) == 1]
        per_rank.append(tuple(map(tuple, largest.tolist())))
    return tuple(per_rank)


def _ends(held: Ints) -> Vectors:
    """Drop repeated loads and, of two chunks, those between the extremes."""
    loads = sorted(set(map(tuple, held.tolist())))
    if loads and len(loads[0]) == 2:
        loads = loads[:1] if len(loads) == 1 else [loads[0], loads[-1]]
    return tuple(loads)
