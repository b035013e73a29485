"""The projection: seconds of a step and its parts, for any number of layouts.

A single layout is a batch of one, and gets the same bits as in any other batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..layout import SHARDINGS
from .block import Block
from .collectives import Links
from .components import Components, component_names, price
from .finish import RATE_AXES, Finish
from .flops import model_flops
from .grouping import distinct, groups
from .pipeline import SHAPE_AXES, pipeline
from .projections import Projections, StageTimes
from .run import run_of
from .shape import LAYER_AXES
from .work import PARTS, Floats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..expr import Array
    from ..problem import Problem
    from ..profiles import Profile
    from .run import Run

_ZERO2, _ZERO3 = SHARDINGS.index("zero-2"), SHARDINGS.index("zero-3")
#: Numbers of chunk times worked on together: they fit the second cache.
_BLOCK = 2**16


class TimeModel:
    """Step times of one problem under one profile.

    Parameters
    ----------
    problem
        Model, cluster, training.
    profile
        How much of its peaks the device reaches.
    causal
        Whether MFU leaves out the masked half of attention.
    run
        How the stack runs the training; if None as the problem's stack does.
    """

    def __init__(
        self,
        problem: Problem,
        profile: Profile,
        *,
        causal: bool = True,
        run: Run | None = None,
    ) -> None:
        """Take the problem; nothing is priced yet."""
        run = run or run_of(problem.stack)
        self.problem, self.profile, self.run = problem, profile, run
        self._links = Links(problem.cluster, profile)
        self._finish = Finish(problem, profile, self._links, run)
        training = problem.training
        self.model_flops = model_flops(
            problem.architecture, training.seq_len, training.global_batch, causal=causal
        )

    def stage_times(self, columns: Mapping[str, Array]) -> StageTimes:
        """Return the times of every component in every layout.

        Parameters
        ----------
        columns
            Every axis of `shardproof.models.layout`, coded, shape [n].
        """
        priced, row = self._price(columns)
        return StageTimes(
            names=component_names(self.problem),
            forward=priced.forward[:, row],
            backward=priced.backward[:, row],
            weight=priced.weight[:, row],
            hop=self._links.hop(columns["pp"].astype(np.float64), priced.message[row]),
        )

    def step_times(
        self, columns: Mapping[str, Array], *, simulate: bool = False
    ) -> Floats:
        """Return lower bounds of the simulated step times alone, in seconds.

        Parameters
        ----------
        columns
            Every axis of `shardproof.models.layout`, coded, shape [n].
        simulate
            Return the simulated times instead.
        """
        return self._run(columns, simulate=simulate, parts=False)["total"]

    def project(self, columns: Mapping[str, Array]) -> Projections:
        """Project layouts, the pipeline by its lower bound.

        Parameters
        ----------
        columns
            Every axis of `shardproof.models.layout`, coded, shape [n].

        Raises
        ------
        InputError
            If a layout's split has no member of its shape, or its schedule has no
            step time.
        """
        return self._projections(self._run(columns, simulate=False, parts=True))

    def refine(self, columns: Mapping[str, Array]) -> Projections:
        """Project layouts, the pipeline simulated; never below `project`.

        Parameters
        ----------
        columns
            Every axis of `shardproof.models.layout`, coded, shape [n].
        """
        return self._projections(self._run(columns, simulate=True, parts=True))

    def _price(self, columns: Mapping[str, Array]) -> tuple[Components, Array]:
        """Price each distinct layer layout once; return which one each row has."""
        sharded = columns["sharding"] >= _ZERO2
        given = {
            **columns,
            "shards": np.where(sharded, columns["dp"] * columns["cp"], 1),
            "expert_shards": np.where(sharded, columns["edp"], 1),
            "gathered": (columns["sharding"] >= _ZERO3).astype(np.int64),
        }
        found, row = distinct(given, LAYER_AXES)
        priced = price(self.problem, self.profile, self._links, found, self.run)
        return priced, row

    def _run(
        self, columns: Mapping[str, Array], *, simulate: bool, parts: bool
    ) -> dict[str, Floats]:
        """Fill the step times, and the parts if asked, shape group by shape group."""
        n = len(columns["pp"])
        priced, row = self._price(columns)
        held, rate = distinct(columns, RATE_AXES)
        rates = self._finish.rates(held)
        names = ("total", "piped", *PARTS) if parts else ("total",)
        result = {name: np.zeros(n) for name in names}
        for key, rows in groups(columns, SHAPE_AXES):
            shape = pipeline(self.problem.architecture, *key)
            size = max(1, _BLOCK // (shape.counts.shape[0] * shape.counts.shape[1]))
            for start in range(0, len(rows), size):
                some = rows[start : start + size]
                own = rates.of(rate[some])
                block = Block(shape, columns["m"][some], priced, row[some], own)
                found = block.times(
                    self._links, self._finish, simulate=simulate, parts=parts
                )
                for name, seconds in found.items():
                    result[name][some] = seconds
        # A step waits for the slowest node: what they lose grows with their number.
        skew = self.profile.stack.stragglers * np.log2(self.problem.cluster.nodes)
        once = self.profile.stack.step + skew * result["total"]
        result["total"] += once
        if parts:
            result["step"] += once
        return result

    def _projections(self, found: dict[str, Floats]) -> Projections:
        total, piped = found.pop("total"), found.pop("piped")
        training, cluster = self.problem.training, self.problem.cluster
        idle = found["p2p"] + found["bubble"]
        devices = cluster.world_size
        tokens = training.global_batch * training.seq_len
        peak = cluster.device.peak_flops[training.precision]
        return Projections(
            step_time=total,
            breakdown=found,
            bubble_fraction=idle / piped,
            tokens_per_s_per_gpu=tokens / (total * devices),
            mfu=self.model_flops / (total * devices * peak),
            band=self.profile.band,
        )
