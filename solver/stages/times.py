"""Step times of explicit stages, by the same engine that times split families.

A *component* is an item, the embedding, or the head with the loss, in this order.
Letters: n stage plans, c components, p ranks, v chunks a rank, k = p + 1 holdings
(the ranks, then chunk 0 of rank 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...models.layout import SCHEDULES
from ...models.pipeline.steady import step_times
from ...models.profiles import profile_for
from ...models.time import TimeModel
from ...models.time.block import Block
from ...models.time.components import Components
from ...models.time.pipeline import Pipeline
from ...models.time.weights import Weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ...models.layout import Layout
    from ...models.problem import Problem
    from ...models.profiles import Profile
    from ...models.time import Projections
    from .items import Item

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class OnceRates:
    """What each component adds once a step, shape [c], in seconds; never too much.

    Attributes
    ----------
    tail
        Of traffic that is never hidden, and of the optimizer.
    lines, shares
        Four lines, and how much of the backward each of them hides: the largest of
        line - share * backward is what a rank's compute does not hide.
    optimizer
        Of the optimizer.
    """

    tail: Floats
    lines: tuple[Floats, ...]
    shares: tuple[float, ...]
    optimizer: Floats


class StepTimes(TimeModel):
    """Times of one skeleton's stage plans.

    Parameters
    ----------
    problem, layout
        The skeleton.
    items
        Layers at their recompute levels.
    profile
        How much of its peaks the device reaches; that of the problem if None.
    """

    def __init__(
        self,
        problem: Problem,
        layout: Layout,
        items: Sequence[Item],
        profile: Profile | None = None,
    ) -> None:
        """Price every component once."""
        super().__init__(problem, profile or profile_for(problem))
        self.layout, self.schedule = layout, SCHEDULES[layout.schedule]
        codes = sorted({0, *(item.code for item in items)})  # 0 prices the ends
        point = layout.point() | {"recompute": 0}
        columns = {n: np.full(len(codes), c) for n, c in point.items()}
        columns["recompute"] = np.array(codes, np.int64)
        priced, row = self._price(columns)
        at = [int(row[codes.index(item.code)]) for item in items]
        ends = len(problem.architecture.kinds) + 1
        kinds = [*(item.kind for item in items), ends, ends + 1]
        self.priced = _taken(priced, kinds, [*at, int(row[0]), int(row[0])])
        held = {n: c[:1] for n, c in columns.items()}
        self.rates = self._finish.rates(held)
        self.hop = float(self._links.hop(float(layout.pp), self.priced.message)[0])

    @property
    def forward(self) -> Floats:
        """Seconds of each component's forward, shape [c]."""
        return self.priced.forward[:, 0]

    @property
    def backward(self) -> Floats:
        """Seconds of each component's backward, shape [c]."""
        return self.priced.backward[:, 0]

    def once(self) -> OnceRates:
        """Return what components add once a step, starts of collectives left out."""
        size = len(self.forward)
        both = np.stack([np.eye(size), 2 * np.eye(size)]).reshape(2 * size, size)
        weights = Weights(
            both * self.priced.dense[:, 0], both * self.priced.expert[:, 0]
        )
        rates = self.rates.of(np.zeros(len(both), np.int64))
        found = self._finish.once(rates, weights)

        def slope(table: Floats) -> Floats:
            own = table.reshape(2, size, size)
            line: Floats = np.einsum("ii->i", own[1] - own[0])
            return line

        gather, reduce = slope(found.gather), slope(found.reduce)
        optimizer, stack = slope(found.optimizer), self.profile.stack
        window, tail = stack.dp_window, stack.dp_tail
        first = gather - window * self.forward, tail * gather
        lines = tuple(f + r for f in first for r in (reduce, tail * reduce))
        always = tail * (gather + reduce) + optimizer
        return OnceRates(always, lines, (window, 0.0) * 2, optimizer)

    def of(self, counts: Ints) -> Floats:
        """Return the simulated step times of stage plans, shape [n], in seconds.

        Parameters
        ----------
        counts
            Components of every chunk, shape [n, p, v, c].
        """
        ahead, back = counts @ self.forward, counts @ self.backward
        n, m = len(counts), np.full(len(counts), self.layout.m)
        if ahead.shape[1:] == (1, 1):
            piped: Floats = m * (ahead + back)[:, 0, 0]
        else:
            piped = step_times(self.schedule, ahead, back, m, self.hop)
        own = np.concatenate([counts.sum(axis=2), counts[:, 0, :1]], axis=1)
        weights = Weights(own @ self.priced.dense[:, 0], own @ self.priced.expert[:, 0])
        once = self._finish.once(self.rates.of(np.zeros(n, np.int64)), weights)
        work = own @ self.forward, own @ self.backward
        after, _ = self._finish.after(piped, m, *work, once, 0)
        total: Floats = piped + after + self.profile.stack.step
        return total

    def projection(self, counts: Ints) -> Projections:
        """Project one stage plan part by part, its pipeline simulated.

        Parameters
        ----------
        counts
            Components of every chunk, shape [p, v, c].
        """
        sums, rank = np.unique(counts.sum(axis=1), axis=0, return_inverse=True)
        holdings = np.concatenate([sums, counts[0, :1]])
        shape = Pipeline(self.schedule, counts, holdings, int(rank.ravel()[0]))
        one = np.zeros(1, np.int64)
        rates = self.rates.of(one)
        m = np.array([self.layout.m])
        block = Block(shape, m, self.priced, one, rates)
        found = block.times(self._links, self._finish, simulate=True, parts=True)
        constant = self.profile.stack.step
        parts = {name: np.zeros(1) + seconds for name, seconds in found.items()}
        parts["total"] += constant
        parts["step"] = np.full(1, constant)
        return self._projections(parts)


def _taken(priced: Components, component: list[int], row: list[int]) -> Components:
    """Lay chosen components at chosen layouts out as components of one layout."""

    def take(table: Floats) -> Floats:
        return table[..., component, row][..., None]

    return Components(
        forward=take(priced.forward),
        backward=take(priced.backward),
        weight=take(priced.weight),
        parts=take(priced.parts),
        dense=take(priced.dense),
        expert=take(priced.expert),
        message=priced.message[row[-1:]],
    )
