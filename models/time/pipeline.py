"""The pipelined part of a step, from the times of a rank's pieces.

A *composition* is what a rank holds over all its chunks; ranks of equal composition
work equally long. Letters: n layouts of one pipeline shape, u compositions, c
components (layer kinds, MTP layer, embedding, head).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..layout import SCHEDULES, SPLITS
from ..pipeline.bounds import BOUNDED, step_time_bound
from ..pipeline.steady import step_times
from ..stages import stages

if TYPE_CHECKING:
    from ..architecture import Architecture
    from ..expr import Array
    from .work import Floats

#: Axes of a pipeline's shape.
SHAPE_AXES = ("schedule", "split", "pp", "vpp")
#: Rounding of sums: a bound is lowered by it, so that it stays one.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Pipeline:
    """One pipeline shape of an architecture.

    Attributes
    ----------
    schedule
        Name of the schedule.
    counts
        Components of each chunk, shape [pp, vpp, c].
    holdings
        Distinct sums over a rank's chunks, the compositions, and behind them chunk 0
        of rank 0, shape [u + 1, c].
    first
        The composition of rank 0.
    """

    schedule: str
    counts: Array
    holdings: Array
    first: int

    def chunk_times(self, components: Floats) -> Floats:
        """Sum components into chunks: from shape [c, n] to [n, pp, vpp]."""
        pp, vpp, c = self.counts.shape
        total = _weighted(components, self.counts.reshape(-1, c))
        return total.reshape(-1, pp, vpp)

    def of_holdings(self, components: Floats) -> Floats:
        """Sum components into holdings: from shape [c, n] to [n, u + 1]."""
        return _weighted(components, self.holdings)

    def of_rows(self, composition: Array, components: Floats) -> Floats:
        """Sum components into one composition a layout: from shape [c, n] to [n]."""
        total: Floats = np.zeros(components.shape[1])
        for i, counts in enumerate(self.holdings.T):
            if counts.any():
                total += counts[composition] * components[i]
        return total

    def time(
        self,
        forward: Floats,
        backward: Floats,
        m: Array,
        hop: Floats,
        simulate: bool,
    ) -> Floats:
        """Return the time from the first forward to the last backward, shape [n].

        Parameters
        ----------
        forward, backward
            Of every component for one micro-batch, shape [c, n], in seconds.
        m
            Micro-batches, shape [n].
        hop
            From stage to stage, shape [n], in seconds.
        simulate
            Whether to simulate, or to bound from below.
        """
        ahead, back = self.chunk_times(forward), self.chunk_times(backward)
        if ahead.shape[1:] == (1, 1):  # one stage: nothing to wait for
            alone: Floats = m * (ahead[:, 0, 0] + back[:, 0, 0])
            return alone
        if simulate:
            return step_times(self.schedule, ahead, back, m, hop)
        bound = step_time_bound(self.schedule, ahead, back, m, hop)
        return bound * (1 - _ROUNDING)


@lru_cache(maxsize=4096)
def pipeline(
    architecture: Architecture, schedule: int, split: int, pp: int, vpp: int
) -> Pipeline:
    """Return a pipeline shape.

    Raises
    ------
    InputError
        If the split has no member of this shape or the schedule has no step time.
    """
    name = SCHEDULES[schedule]
    if name not in BOUNDED:
        raise InputError(
            f"step times are known for the schedules {', '.join(BOUNDED)}, got {name}"
        )
    ranks = stages(architecture, split, pp, vpp)
    if not ranks:
        raise InputError(
            f"{architecture.num_layers} layers have no {SPLITS[split]} split over "
            f"pp={pp} ranks of vpp={vpp} chunks; choose another split or size"
        )
    counts = np.array(
        [
            [[*c.layers, c.mtp, int(c.embedding), int(c.head)] for c in stage]
            for stage in ranks
        ],
        np.int64,
    )
    sums, composition = np.unique(counts.sum(axis=1), axis=0, return_inverse=True)
    holdings = np.concatenate([sums, counts[0, :1]])
    return Pipeline(name, counts, holdings, int(composition.ravel()[0]))


def _weighted(components: Floats, counts: Array) -> Floats:
    """Sum components by counts of shape [k, c]: from shape [c, n] to [n, k].

    Added in a fixed order, so that equal layouts get equal bits, which a matrix
    product does not promise.
    """
    total: Floats = np.zeros((components.shape[1], len(counts)))
    for component, weight in zip(components, counts.T, strict=True):
        used = np.flatnonzero(weight)
        if 2 * len(used) > len(weight):
            total += component[:, None] * weight
        else:
            for k in used.tolist():
                total[:, k] += component * weight[k]
    return total
