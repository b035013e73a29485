"""One step of many layouts of the same pipeline shape.

Letters: n layouts, k holdings of the shape (its compositions, and rank 0's chunk 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .grouping import distinct
from .weights import Weights
from .work import PARTS, Floats

if TYPE_CHECKING:
    from ..expr import Array
    from .collectives import Links
    from .components import Components
    from .finish import Finish, Rates
    from .pipeline import Pipeline


@dataclass(frozen=True, eq=False)
class Block:
    """Layouts of one pipeline shape.

    Attributes
    ----------
    shape
        The pipeline shape.
    m
        Micro-batches, shape [n].
    priced, row
        Priced components, and which of their layouts each row has, shape [n].
    rates
        What a parameter costs once a step, shape [n].
    """

    shape: Pipeline
    m: Array
    priced: Components
    row: Array
    rates: Rates

    def times(
        self, links: Links, finish: Finish, *, simulate: bool, parts: bool
    ) -> dict[str, Floats]:
        """Return ``total`` without the step's constant, and if asked every part.

        ``piped``, from the first forward to the last backward, is returned with the
        parts. All have shape [n], in seconds.
        """
        shape, m = self.shape, self.m
        # Layouts that differ in sharding alone share the pipelined part.
        own, at = distinct({"row": self.row, "m": m}, ("row", "m"))
        some = own["row"]
        forward, backward = self.priced.forward[:, some], self.priced.backward[:, some]
        hop = links.hop(float(len(shape.counts)), self.priced.message[some])
        piped = shape.time(forward, backward, own["m"], hop, simulate)[at]
        ahead, back = (shape.of_holdings(x)[at] for x in (forward, backward))
        once = finish.once(self.rates, self._weights())
        after, optimizer = finish.after(piped, m, ahead, back, once, shape.first)
        if not parts:
            return {"total": piped + after}
        layers, work = self._busiest((ahead + back)[:, :-1])
        idle = np.maximum(piped - work, 0.0)
        sent = np.minimum(idle, 2 * (len(shape.counts) - 1) * hop[at])
        return layers | {
            "total": piped + after,
            "piped": piped,
            "p2p": sent,
            "bubble": idle - sent,
            "dp": layers["dp"] + after - optimizer,
            "optimizer": optimizer,
        }

    def _weights(self) -> Weights:
        """Return the parameters of every holding, shape [n, k]."""
        return Weights(
            self.shape.of_holdings(self.priced.dense[:, self.row]),
            self.shape.of_holdings(self.priced.expert[:, self.row]),
        )

    def _busiest(self, work: Floats) -> tuple[dict[str, Floats], Floats]:
        """Return the parts and the time of the work of the rank that has most of it."""
        m, rank = self.m, work.argmax(axis=1)
        layers = {
            name: m * self.shape.of_rows(rank, self.priced.parts[i][:, self.row])
            for i, name in enumerate(PARTS)
        }
        return layers, m * np.take_along_axis(work, rank[:, None], 1)[:, 0]
