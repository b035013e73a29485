"""What a step does once: gradient reduction, weight gathering, the optimizer.

Dense weights are shared by dp * cp ranks that lie tp apart, experts' weights by edp
ranks that lie etp * ep apart (Megatron's order tp-cp-ep-dp-pp).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..layout import SHARDINGS
from ..memory.optimizers import recipe
from ..parameters import (
    embedding_tensors,
    head_tensors,
    layer_tensors,
    mtp_tensors,
)
from .ends import vocabulary_rows
from .work import Floats, Work

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..architecture import Architecture
    from ..expr import Array
    from ..parameters import Tensor
    from ..problem import Problem
    from ..profiles import Profile
    from .attention import Pricer
    from .collectives import Links

_ZERO1, _ZERO2, _ZERO3 = (SHARDINGS.index(f"zero-{stage}") for stage in (1, 2, 3))


@dataclass(frozen=True)
class Weights:
    """Parameters of a component on one rank: dense ones, and experts' ones."""

    dense: Floats
    expert: Floats


def weights_of(
    tensors: Iterable[Tensor], arch: Architecture, axes: Mapping[str, Floats]
) -> Weights:
    """Count the numbers of some tensors on one rank.

    Parameters
    ----------
    tensors
        Of one component.
    axes
        ``tp``, ``ep`` and ``etp``.
    """
    count = dict.fromkeys(
        ("column", "row", "replicated", "vocab", "expert", "expert-bias"), 0
    )
    for tensor in tensors:
        count[tensor.shard] += tensor.count
    padding = vocabulary_rows(arch.vocab, axes["tp"]) / arch.vocab
    dense = (count["column"] + count["row"]) / axes["tp"]
    dense = dense + count["replicated"] + count["vocab"] * padding
    expert = count["expert"] / (axes["ep"] * axes["etp"])
    return Weights(dense, expert + count["expert-bias"] / axes["ep"])


def component_tensors(arch: Architecture) -> list[tuple[Tensor, ...]]:
    """Return the tensors of every component: layer kinds, MTP layer, both ends."""
    return [
        *(layer_tensors(arch, kind) for kind in arch.kinds),
        mtp_tensors(arch) if arch.mtp_layers else (),
        embedding_tensors(arch),
        head_tensors(arch),
    ]


def sharded_layer(p: Pricer, work: Work, weights: Weights, gradient_bytes: int) -> Work:
    """Add what gathering sharded weights, and scattering gradients, exposes.

    Weights are gathered for the forward and again for the backward.
    """
    shape, o = p.shape, p.profile.stack.sharding_overlap
    ahead: Floats = np.zeros_like(shape.tp)
    back: Floats = np.zeros_like(shape.tp)
    groups = (
        (weights.dense, shape.axis("shards"), shape.tp),
        (
            weights.expert,
            shape.axis("expert_shards"),
            shape.axis("etp") * shape.axis("ep"),
        ),
    )
    for count, size, stride in groups:
        gather = shape.links.ring("all_gather", size, stride, 2.0 * count)
        scatter = shape.links.ring(
            "reduce_scatter", size, stride, float(gradient_bytes) * count
        )
        gather = np.where(count > 0, gather, 0.0)
        scatter = np.where(count > 0, scatter, 0.0)
        ahead, back = ahead + gather, back + gather + scatter
    exposed = [
        time * (np.power(1 + np.power(traffic / time, o), 1 / o) - 1)
        for time, traffic in ((work.forward_time, ahead), (work.backward_time, back))
    ]
    return work + Work({"dp": exposed[0]}, {"dp": exposed[1]})


class StepEnds:
    """Prices what a step does once under one optimizer."""

    def __init__(self, problem: Problem, profile: Profile, links: Links) -> None:
        """Take the recipe's bytes and the profile's overlap."""
        self._links = links
        self._recipe = recipe(problem.training.optimizer)
        self._stack = profile.stack
        hbm = problem.cluster.device.hbm_bandwidth
        self._bandwidth = hbm * profile.memory.optimizer

    def reduction(
        self,
        columns: Mapping[str, Array],
        weights: Weights,
        forward: Floats,
        backward: Floats,
    ) -> Floats:
        """Return the traffic that no compute hides, shape of ``weights``, in seconds.

        Parameters
        ----------
        columns
            The axes, shape [n].
        weights
            Of a rank, shape [n, compositions].
        forward, backward
            Of one micro-batch on the rank, which hide gathering and reduction; same
            shape.

        Notes
        -----
        Gradients are reduced behind the last micro-batch's backward (every one's
        with zero-2), weights gathered behind the first one's forward.
        """
        axes = {n: c.astype(np.float64)[:, None] for n, c in columns.items()}
        sharding = columns["sharding"][:, None]
        reduce: Floats = np.zeros(weights.dense.shape)
        gather: Floats = np.zeros(weights.dense.shape)
        for count, size, stride in _holders(weights, axes):
            rates = (
                self._links.ring_rate(kind, size, stride)
                for kind in ("all_reduce", "reduce_scatter")
            )
            pick = (
                np.where(sharding >= _ZERO1, part, whole)
                for whole, part in zip(*rates, strict=True)
            )
            reduce += _traffic(count, self._recipe.gradients, *pick)
            rate = self._links.ring_rate("all_gather", size, stride)
            gather += _traffic(count, self._recipe.weights, *rate)
        reduce = self._exposed(reduce, backward)
        reduce = reduce * np.where(sharding == _ZERO2, axes["m"], 1.0)
        gather = np.where(sharding >= _ZERO1, self._exposed(gather, forward), 0.0)
        return np.where(sharding >= _ZERO3, 0.0, reduce + gather)

    def _exposed(self, traffic: Floats, compute: Floats) -> Floats:
        hidden = traffic - self._stack.dp_window * compute
        return np.maximum(hidden, self._stack.dp_tail * traffic)

    def optimizer(self, columns: Mapping[str, Array], weights: Weights) -> Floats:
        """Return the time of an optimizer step on a rank, shape of ``weights``.

        Gradients and states are read, states and weights written, and gradients set
        to zero, which is done where they are whole.
        """
        axes = {n: c.astype(np.float64)[:, None] for n, c in columns.items()}
        sharding = columns["sharding"][:, None]
        r = self._recipe
        updated = r.gradients + 2 * r.states + r.weights
        time: Floats = np.zeros(weights.dense.shape)
        for count, size, _ in _holders(weights, axes):
            own = updated / np.where(sharding >= _ZERO1, size, 1.0)
            kept = r.gradients / np.where(sharding >= _ZERO2, size, 1.0)
            time += count * ((own + kept) / self._bandwidth)
        return time


def _holders(
    weights: Weights, axes: Mapping[str, Floats]
) -> list[tuple[Floats, Floats, Floats]]:
    """Return dense and experts' weights with the size and stride of their group."""
    groups = [(weights.dense, axes["dp"] * axes["cp"], axes["tp"])]
    if weights.expert.any():
        groups.append((weights.expert, axes["edp"], axes["etp"] * axes["ep"]))
    return groups


def _traffic(count: Floats, width: int, rate: Floats, latency: Floats) -> Floats:
    """Time a collective over ``count`` numbers, none where there are none."""
    return count * (width * rate) + latency * (count > 0)
