"""The dependencies of an order, sorted into levels for a vectorised sweep.

A level holds at most one slot of each rank and depends on earlier levels alone, so
one pass over the levels times every configuration at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from .order import B_CHUNK, B_MICRO, F_CHUNK, F_MICRO, W_CHUNK, Order

if TYPE_CHECKING:
    from .arrays import Ints

#: Rows before the slots: the start of the step, and a dependency that never binds.
START, NEVER, SLOTS = 0, 1, 2


class DeadlockError(ValueError):
    """An order in which every rank waits for another."""


@dataclass(frozen=True, eq=False)
class Network:
    """An order ready for the sweep; rows are slots in the order of their levels.

    Attributes
    ----------
    order
        The order.
    row
        Row of every slot of the order, shape [slots].
    bounds
        First row of each level, and the number of rows, shape [levels + 1].
    before
        Row of the slot that the same rank runs before, by row.
    needs
        Rows of the slots that send to this one, by row, shape [rows, 1 or 2]:
        the first for its forward, the second for its backward.
    hops
        Whether what a needed slot sends crosses ranks, shape of ``needs``.
    kind
        Row's entry in ``kinds``, by row.
    kinds
        Distinct rank and chunks of forward, backward, weight gradient,
        shape [kinds, 4].
    last
        Row of each rank's last slot, shape [pp].
    """

    order: Order
    row: Ints
    bounds: Ints
    before: Ints
    needs: Ints
    hops: Ints
    kind: Ints
    kinds: Ints
    last: Ints


#: Slots of an order above which its network is not kept.
_KEPT = 400_000


def network(order: Order) -> Network:
    """Sort an order into levels; networks of small orders are kept.

    Raises
    ------
    DeadlockError
        If the order cannot be run to its end.
    """
    build = _network if len(order.slots) <= _KEPT else _network.__wrapped__
    return build(order)


@lru_cache(maxsize=256)
def _network(order: Order) -> Network:
    needs, hops = _needs(order)
    level = _levels(order, needs)
    sequence = np.argsort(level, kind="stable")
    row = np.empty_like(sequence)
    row[sequence] = np.arange(len(sequence)) + SLOTS
    before = np.concatenate([[START], row[:-1]])
    before[order.starts[:-1]] = START
    needed = np.where(needs >= 0, row[needs], NEVER)[sequence]
    if (needed == NEVER).all(axis=0)[1]:
        needed, hops = needed[:, :1], hops[:, :1]
    kind, kinds = _kinds(order)
    counts = np.bincount(level)
    return Network(
        order=order,
        row=row,
        bounds=np.cumsum([SLOTS, *counts]),
        before=before[sequence],
        needs=needed,
        hops=hops[sequence],
        kind=kind[sequence],
        kinds=kinds,
        last=row[order.starts[1:] - 1],
    )


def _kinds(order: Order) -> tuple[Ints, Ints]:
    """Number the distinct kinds of slots: each slot's kind, and what each kind is."""
    sizes = (order.pp, *(order.chunks + 1,) * 3)
    columns = [order.slots[:, c] + 1 for c in (F_CHUNK, B_CHUNK, W_CHUNK)]
    code = np.ravel_multi_index((order.rank, *columns), sizes)
    present = np.flatnonzero(np.bincount(code, minlength=int(np.prod(sizes))))
    number = np.zeros(int(np.prod(sizes)), np.int64)
    number[present] = np.arange(len(present))
    rank, *chunks = np.unravel_index(present, sizes)
    return number[code], np.column_stack([rank, *(c - 1 for c in chunks)])


def _needs(order: Order) -> tuple[Ints, Ints]:
    """Return the slots each slot waits for, -1 if none, and which cross ranks."""
    previous, following = order.placement.previous, order.placement.following
    needs = np.full((len(order.slots), 2), -1, np.int64)
    hops = np.zeros((len(order.slots), 2), np.int64)
    columns = ((F_CHUNK, F_MICRO, previous), (B_CHUNK, B_MICRO, following))
    for side, (chunk_at, micro_at, neighbour) in enumerate(columns):
        runs = np.flatnonzero(order.slots[:, chunk_at] >= 0)
        rank, chunk = order.rank[runs], order.slots[runs, chunk_at]
        micro = order.slots[runs, micro_at]
        where = np.full((order.pp, order.chunks, order.micros), -1, np.int64)
        where[rank, chunk, micro] = runs
        source = neighbour[rank, chunk]
        found = where[source[:, 0], source[:, 1], micro]
        needs[runs, side] = np.where(source[:, 0] >= 0, found, -1)
        hops[runs, side] = source[:, 0] != rank
    # With one dependency, a forward's or a backward's, one column is enough.
    if not ((needs >= 0).all(axis=1)).any():
        backward = needs[:, 1] >= 0
        needs[backward, 0], hops[backward, 0] = needs[backward, 1], hops[backward, 1]
        needs[:, 1] = -1
    return needs, hops


def _levels(order: Order, needs: Ints) -> Ints:
    """Let all ranks whose next slot can run do so, again and again."""
    # One more slot behind each rank's last, which waits for itself for ever.
    total, pp = len(needs), order.pp
    place = np.arange(total) + order.rank
    after = order.starts[1:] + np.arange(pp)
    nothing = total + pp
    level = np.full(nothing + 1, -1, np.int64)
    level[nothing] = 0
    sides = []
    for side in range(1 + bool((needs[:, 1] >= 0).any())):
        waits = np.empty(nothing, np.int64)
        waits[after] = after
        waits[place] = np.where(needs[:, side] >= 0, place[needs[:, side]], nothing)
        sides.append(waits)
    at = order.starts[:-1] + np.arange(pp)
    now, left = 0, total
    while left:
        ready = level[sides[0][at]] >= 0
        for waits in sides[1:]:
            ready &= level[waits[at]] >= 0
        slot = at[ready]
        if not len(slot):
            raise DeadlockError(f"{order.schedule}: {left} slots wait for each other")
        level[slot] = now
        at += ready
        left -= len(slot)
        now += 1
    levels: Ints = level[place]
    return levels
