"""What is asked of a placement of weight gradients: times, bytes, limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..held import peak_bytes
from ..timeline import timeline

if TYPE_CHECKING:
    from ..arrays import Floats, Ints
    from ..order import Order

#: Whole time units in the shortest operation; more cost search, fewer the bound.
UNITS = 100


@dataclass(frozen=True, eq=False)
class WeightTask:
    """Stage times in seconds, shape [pp], and bytes, shape [pp]."""

    m: int
    forward: Floats
    backward: Floats
    weight: Floats
    p2p: float
    full: Ints
    w_only: Ints
    limit: Ints

    @property
    def pp(self) -> int:
        """Ranks."""
        return len(self.forward)

    @cached_property
    def unit(self) -> float:
        """Length of a whole time unit, in seconds: the longest that fits all times.

        Where none fits, times are rounded down to ``UNITS`` parts of the shortest.
        """
        times = np.concatenate([self.forward, self.backward, self.weight, [self.p2p]])
        shortest = float(times[times > 0].min())
        for parts in range(1, UNITS):
            scaled = times / shortest * parts
            if np.abs(scaled - np.round(scaled)).max() < 1e-9:
                return shortest / parts * (1 - 1e-9)  # rounding down must not lose one
        return shortest / UNITS

    def fits(self, order: Order) -> bool:
        """Whether an order stays within every rank's limit."""
        peaks = peak_bytes(order, self.full[None, :, None], self.w_only[None, :, None])
        return bool((peaks[0] <= self.limit).all())

    def makespan(self, order: Order) -> float:
        """Return the simulated time of an order, in seconds."""
        return timeline(order, *self._times(), p2p=self.p2p).makespan

    def starts(self, order: Order) -> dict[tuple[str, int, int], float]:
        """Return when each operation of an order starts, in seconds."""
        found = {}
        for event in timeline(order, *self._times(), p2p=self.p2p).events():
            for kind, unit in zip(
                "FBW", (event.forward, event.backward, event.weight), strict=True
            ):
                if unit is not None:
                    found[kind, event.rank, unit[1]] = event.start
        return found

    def _times(self) -> tuple[Floats, Floats, Floats]:
        return self.forward[:, None], self.backward[:, None], self.weight[:, None]
