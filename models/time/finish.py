"""What a step does once: gradient reduction, weight gathering, the optimizer.

Dense weights are shared by dp * cp ranks that lie tp apart, experts' weights by edp
ranks that lie etp * ep apart (Megatron's order tp-cp-ep-dp-pp).

Weights are gathered behind a rank's first forwards, gradients reduced behind its
last backwards, at a share of the compute's time; a tail is never hidden. The first
and the last operation of the pipeline are those of rank 0 in chunk 0, so what they
do not hide follows the pipelined part. Every other rank has its work of the step to
hide its traffic. The step ends when the last of these does.

Letters: n layouts, u compositions of ranks, k = u + 1 holdings: the compositions,
then chunk 0 of rank 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..layout import SHARDINGS
from ..memory.optimizers import recipe
from .run import PLAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..expr import Array
    from ..problem import Problem
    from ..profiles import Profile
    from .collectives import Links
    from .run import Run
    from .weights import Weights
    from .work import Floats

_ZERO1, _ZERO2, _ZERO3 = (SHARDINGS.index(f"zero-{stage}") for stage in (1, 2, 3))


#: Axes of what a parameter costs once a step.
RATE_AXES = ("tp", "cp", "ep", "etp", "dp", "edp", "sharding")


@dataclass(frozen=True, eq=False)
class Rates:
    """What weights cost once a step, dense ones and experts'; shape [5, n] each.

    The first axis holds seconds per parameter of reducing gradients, seconds before
    the first one, the same two of gathering weights, and seconds per parameter of
    the optimizer.
    """

    dense: Floats
    expert: Floats

    def of(self, rows: Array) -> Rates:
        """Take some layouts."""
        return Rates(self.dense[:, rows], self.expert[:, rows])


@dataclass(frozen=True, eq=False)
class Once:
    """Seconds of what each holding does once a step, shape [n, k].

    Attributes
    ----------
    gather, reduce
        Traffic of weights and gradients, before any of it is hidden.
    optimizer
        The optimizer's step.
    """

    gather: Floats
    reduce: Floats
    optimizer: Floats


class Finish:
    """Prices the end of a step."""

    def __init__(
        self, problem: Problem, profile: Profile, links: Links, run: Run = PLAIN
    ) -> None:
        """Take the recipe's bytes and the profile's overlap."""
        # Adapters are a thousandth of the weights: what they cost once is left out.
        self._trained = 0.0 if run.workload == "lora" else 1.0
        self._links = links
        self._recipe = recipe(problem.training.optimizer)
        self._stack = profile.stack
        hbm = problem.cluster.device.hbm_bandwidth
        self._bandwidth = hbm * profile.memory.optimizer

    def rates(self, columns: Mapping[str, Array]) -> Rates:
        """Price one parameter, and one collective's start.

        Parameters
        ----------
        columns
            The axes of ``RATE_AXES``, shape [n].

        Notes
        -----
        With zero-2 gradients, and with zero-3 weights too, move in every micro-batch
        and are priced there. The optimizer reads gradients and states, writes states
        and weights, and sets gradients to zero where they are kept.
        """
        axes = {n: c.astype(np.float64) for n, c in columns.items()}
        dense = self._group_rates(
            axes["dp"] * axes["cp"], axes["tp"], columns["sharding"]
        )
        expert = self._group_rates(
            axes["edp"], axes["etp"] * axes["ep"], columns["sharding"]
        )
        return Rates(dense, expert)

    def _group_rates(self, size: Floats, stride: Floats, stage: Array) -> Floats:
        """Return the rates of weights that ``size`` ranks share, shape [5, n]."""
        r = self._recipe
        whole = self._links.ring_rate("all_reduce", size, stride)
        part = self._links.ring_rate("reduce_scatter", size, stride)
        gather = self._links.ring_rate("all_gather", size, stride)
        reduce = [
            np.select([stage < _ZERO1, stage == _ZERO1], [a, b], 0.0)
            for a, b in zip(whole, part, strict=True)
        ]
        once = (stage >= _ZERO1) & (stage < _ZERO3)
        updated = r.gradients + 2 * r.states + r.weights
        own = updated / np.where(stage >= _ZERO1, size, 1.0)
        kept = r.gradients / np.where(stage >= _ZERO2, size, 1.0)
        return self._trained * np.stack(
            [
                r.gradients * reduce[0],
                reduce[1],
                np.where(once, r.weights * gather[0], 0.0),
                np.where(once, gather[1], 0.0),
                (own + kept) / self._bandwidth,
            ]
        )

    def once(self, rates: Rates, weights: Weights) -> Once:
        """Price what each holding does once.

        Parameters
        ----------
        rates
            Of each layout, shape [n].
        weights
            Of each holding, shape [n, k].
        """
        gather, reduce, optimizer = np.zeros((3, *weights.dense.shape))
        groups = [(weights.dense, rates.dense)]
        if weights.expert.any():
            groups.append((weights.expert, rates.expert))
        for count, group in groups:
            some = count > 0
            per_gradient, start, per_weight, begin, update = group[:, :, None]
            reduce += count * per_gradient + some * start
            gather += count * per_weight + some * begin
            optimizer += count * update
        return Once(gather, reduce, optimizer)

    def after(
        self,
        piped: Floats,
        m: Array,
        forward: Floats,
        backward: Floats,
        once: Once,
        first: int,
    ) -> tuple[Floats, Floats]:
        """Return what follows the pipelined part, and the optimizer's share of it.

        Parameters
        ----------
        piped
            The pipelined part, shape [n], in seconds.
        m
            Micro-batches, shape [n].
        forward, backward
            Of each holding for one micro-batch, shape [n, k], in seconds.
        once
            What each holding does once.
        first
            The composition of rank 0.

        Returns
        -------
        tuple
            Two arrays of shape [n], in seconds.
        """
        tail = self._stack.dp_tail * (once.gather + once.reduce) + once.optimizer
        exposed = self._exposed(once.gather, forward)
        exposed = exposed + self._exposed(once.reduce, backward)
        # From here on without the last holding, the chunk of rank 0.
        optimizer = once.optimizer[:, :-1]
        own = m[:, None] * (forward + backward)[:, :-1] + exposed[:, :-1] + optimizer
        after = np.maximum(tail[:, :-1], own - piped[:, None])
        last = exposed[:, -1] + once.optimizer[:, first]
        slowest = after.argmax(axis=1)[:, None]
        rest = np.take_along_axis(after, slowest, 1)[:, 0]
        spent = np.take_along_axis(optimizer, slowest, 1)[:, 0]
        rank_0 = last >= rest
        return (
            np.where(rank_0, last, rest),
            np.where(rank_0, once.optimizer[:, first], spent),
        )

    def _exposed(self, traffic: Floats, compute: Floats) -> Floats:
        hidden = traffic - self._stack.dp_window * compute
        exposed: Floats = np.maximum(hidden, self._stack.dp_tail * traffic)
        return exposed
