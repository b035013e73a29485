"""The projection: seconds of a step and its parts, for any number of layouts.

A single layout is a batch of one, and gets the same bits as in any other batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..layout import SHARDINGS
from .collectives import Links
from .components import Components, component_names, price
from .finish import Finish
from .flops import model_flops
from .grouping import distinct, groups
from .pipeline import SHAPE_AXES, Pipeline, pipeline
from .shape import LAYER_AXES
from .weights import Weights
from .work import PARTS, Floats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..expr import Array
    from ..problem import Problem
    from ..profiles import Profile

_ZERO2, _ZERO3 = SHARDINGS.index("zero-2"), SHARDINGS.index("zero-3")
#: Numbers of chunk times worked on together: they fit the second cache.
_BLOCK = 2**16
#: Axes that a block reads beside its rows' prices.
BLOCK_AXES = ("tp", "cp", "ep", "etp", "pp", "dp", "edp", "m", "sharding")


@dataclass(frozen=True, eq=False)
class StageTimes:
    """Seconds of every component for one micro-batch; arrays of shape [c, n].

    Attributes
    ----------
    names
        The components: layer kinds, MTP layer, embedding, head.
    forward, backward
        ``backward`` holds the weight gradients and what is recomputed.
    weight
        Weight gradients alone.
    hop
        From a stage to the next, shape [n].
    """

    names: tuple[str, ...]
    forward: Floats
    backward: Floats
    weight: Floats
    hop: Floats


@dataclass(frozen=True, eq=False)
class Projections:
    """Projected speed of n layouts.

    Attributes
    ----------
    step_time
        Seconds, shape [n].
    breakdown
        Seconds by part, shape [n] each; they sum to ``step_time``. Parts of layers
        are those of the rank that works longest.
    bubble_fraction
        Share of the pipelined part in which that rank waits.
    tokens_per_s_per_gpu, mfu
        Speed, and model FLOPs over the dense peak.
    band
        Relative half-width of the interval of the step time.
    """

    step_time: Floats
    breakdown: Mapping[str, Floats]
    bubble_fraction: Floats
    tokens_per_s_per_gpu: Floats
    mfu: Floats
    band: float


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
    """

    def __init__(
        self, problem: Problem, profile: Profile, *, causal: bool = True
    ) -> None:
        """Take the problem; nothing is priced yet."""
        _check_formats(problem, profile)
        self.problem, self.profile = problem, profile
        self._links = Links(problem.cluster, profile)
        self._finish = Finish(problem, profile, self._links)
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

    def step_times(self, columns: Mapping[str, Array]) -> Floats:
        """Return lower bounds of the simulated step times alone, in seconds.

        Parameters
        ----------
        columns
            Every axis of `shardproof.models.layout`, coded, shape [n].
        """
        return self._run(columns, simulate=False, parts=False)["total"]

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
        return price(self.problem, self.profile, self._links, found), row

    def _run(
        self, columns: Mapping[str, Array], *, simulate: bool, parts: bool
    ) -> dict[str, Floats]:
        """Fill the step times, and the parts if asked, shape group by shape group."""
        n = len(columns["pp"])
        priced, row = self._price(columns)
        names = ("total", "piped", *PARTS) if parts else ("total",)
        result = {name: np.zeros(n) for name in names}
        for key, rows in groups(columns, SHAPE_AXES):
            shape = pipeline(self.problem.architecture, *key)
            size = max(1, _BLOCK // (shape.counts.shape[0] * shape.counts.shape[1]))
            for start in range(0, len(rows), size):
                some = rows[start : start + size]
                own = {name: columns[name][some] for name in BLOCK_AXES}
                found = self._block(shape, own, priced, row[some], simulate, parts)
                for name, seconds in found.items():
                    result[name][some] = seconds
        return result

    def _block(
        self,
        shape: Pipeline,
        columns: Mapping[str, Array],
        priced: Components,
        row: Array,
        simulate: bool,
        parts: bool,
    ) -> dict[str, Floats]:
        """Time rows of one pipeline shape."""
        # Layouts that differ in sharding alone share the pipelined part.
        given = {"row": row, "m": columns["m"]}
        own, at = distinct(given, ("row", "m"))
        forward, backward = (
            priced.forward[:, own["row"]],
            priced.backward[:, own["row"]],
        )
        hop = self._links.hop(float(len(shape.counts)), priced.message[own["row"]])
        piped = shape.time(forward, backward, own["m"], hop, simulate)[at]
        ahead, back = (shape.of_holdings(x)[at] for x in (forward, backward))
        weights = Weights(
            shape.of_holdings(priced.dense[:, row]),
            shape.of_holdings(priced.expert[:, row]),
        )
        m = columns["m"]
        once = self._finish.once(columns, weights)
        after, optimizer = self._finish.after(piped, m, ahead, back, once, shape.first)
        total = piped + after + self.profile.stack.step
        if not parts:
            return {"total": total}
        work = (ahead + back)[:, :-1]
        busiest = work.argmax(axis=1)
        layers = {
            name: m * shape.of_rows(busiest, priced.parts[i][:, row])
            for i, name in enumerate(PARTS)
        }
        idle = np.maximum(piped - m * _pick(work, busiest), 0.0)
        sent = np.minimum(idle, 2 * (columns["pp"] - 1) * hop[at])
        return layers | {
            "total": total,
            "piped": piped,
            "p2p": sent,
            "bubble": idle - sent,
            "dp": layers["dp"] + after - optimizer,
            "optimizer": optimizer,
            "step": np.full(len(m), self.profile.stack.step),
        }

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


def _check_formats(problem: Problem, profile: Profile) -> None:
    """Refuse a number format that the device or the profile does not know."""
    device, precision = problem.cluster.device, problem.training.precision
    if precision not in device.peak_flops:
        raise InputError(
            f"{device.name} has no {precision} matrix units; it has "
            f"{', '.join(device.formats)}"
        )
    if precision not in profile.gemm:
        raise InputError(
            f"profile {profile.name} has no factors for {precision}; it has "
            f"{', '.join(profile.gemm)}"
        )


def _pick(values: Floats, column: Array) -> Floats:
    """Take one column of each row."""
    picked: Floats = np.take_along_axis(values, column[:, None], 1)[:, 0]
    return picked
