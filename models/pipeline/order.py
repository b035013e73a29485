"""An order of operations: what each rank runs, slot after slot.

A slot is run without a pause and holds a forward, an input-gradient backward, a
weight-gradient backward, or several of them: backward and weight gradient of one
micro-batch make the full backward; a forward and a backward of two micro-batches
are an overlapped pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .arrays import Ints
    from .placement import Placement

#: Columns of a slot; -1 where the slot has no such operation.
F_CHUNK, F_MICRO, B_CHUNK, B_MICRO, W_CHUNK, W_MICRO = range(6)
Slot = tuple[int, int, int, int, int, int]


def run_f(chunk: int, micro: int) -> Slot:
    """Make the slot of a forward."""
    return (chunk, micro, -1, -1, -1, -1)


def run_b(chunk: int, micro: int) -> Slot:
    """Make the slot of an input-gradient backward."""
    return (-1, -1, chunk, micro, -1, -1)


def run_w(chunk: int, micro: int) -> Slot:
    """Make the slot of a weight-gradient backward."""
    return (-1, -1, -1, -1, chunk, micro)


def run_bw(chunk: int, micro: int) -> Slot:
    """Make the slot of a full backward."""
    return (-1, -1, chunk, micro, chunk, micro)


def run_pair(forward: tuple[int, int], backward: tuple[int, int]) -> Slot:
    """Make the slot of a forward overlapped with a full backward."""
    return (*forward, *backward, *backward)


@dataclass(frozen=True, eq=False)
class Order:
    """What every rank runs, in order.

    Attributes
    ----------
    schedule
        Name of the schedule.
    m
        Micro-batches of a step, all paths together.
    placement
        Where the stages lie.
    slots
        All slots, rank after rank, shape [slots, 6], columns of this module.
    starts
        First slot of each rank, and the number of slots, shape [pp + 1].
    split
        Whether weight gradients run apart from input gradients.
    """

    schedule: str
    m: int
    placement: Placement
    slots: Ints
    starts: Ints
    split: bool

    @property
    def pp(self) -> int:
        """Ranks."""
        return self.placement.pp

    @property
    def chunks(self) -> int:
        """Chunks of each rank."""
        return self.placement.chunks

    @property
    def micros(self) -> int:
        """Micro-batches of each path."""
        return self.m // len(self.placement.paths)

    @cached_property
    def rank(self) -> Ints:
        """Rank of every slot, shape [slots]."""
        return np.repeat(np.arange(self.pp), np.diff(self.starts))

    def of_rank(self, rank: int) -> Ints:
        """Return the slots of one rank, shape [slots of the rank, 6]."""
        return self.slots[self.starts[rank] : self.starts[rank + 1]]


def order_of(
    schedule: str, m: int, placement: Placement, ranks: list[list[Slot]]
) -> Order:
    """Join the slots of all ranks."""
    slots = np.array([slot for rank in ranks for slot in rank], np.int64)
    starts = np.cumsum([0, *map(len, ranks)])
    split = bool(((slots[:, B_CHUNK] >= 0) & (slots[:, W_CHUNK] < 0)).any())
    return Order(schedule, m, placement, slots, starts, split)
