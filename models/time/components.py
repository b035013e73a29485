"""Times and weights of every component of a model, over distinct layer layouts.

Components are the layer kinds, the MTP layer, the embedding and the head, in this
order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..memory.optimizers import recipe
from .ends import embedding_work, head_work, mtp_work
from .kernels import WIDTH, Kernels
from .layer import layer_work
from .pricer import Pricer
from .shape import Shape
from .sharding import sharded
from .weights import component_tensors, weights_of
from .work import PARTS, Floats, Work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..expr import Array
    from ..problem import Problem
    from ..profiles import Profile
    from .collectives import Links
    from .run import Run


@dataclass(frozen=True, eq=False)
class Components:
    """Every component on one rank for one micro-batch.

    Attributes
    ----------
    forward, backward
        Seconds, shape [c, layouts].
    weight
        Seconds of weight gradients within ``backward``, shape [c, layouts].
    parts
        Forward and backward together by part, shape [parts of ``PARTS``, c, layouts].
    dense, expert
        Parameters, shape [c, layouts].
    message
        Bytes a stage sends to the next one, shape [layouts].
    """

    forward: Floats
    backward: Floats
    weight: Floats
    parts: Floats
    dense: Floats
    expert: Floats
    message: Floats


def component_names(problem: Problem) -> tuple[str, ...]:
    """Name the components in order."""
    kinds = (f"layer {i}" for i in range(len(problem.architecture.kinds)))
    return (*kinds, "mtp", "embedding", "head")


def price(
    problem: Problem,
    profile: Profile,
    links: Links,
    columns: Mapping[str, Array],
    run: Run,
) -> Components:
    """Price every component.

    Parameters
    ----------
    problem, profile, links
        What is trained, on what.
    columns
        The axes of ``LAYER_AXES``, shape [layouts].
    run
        How the stack runs it.
    """
    arch, training = problem.architecture, problem.training
    shape = Shape(columns, training.seq_len, links)
    optimizer = recipe(training.optimizer)
    device = problem.cluster.device
    gradients = optimizer.gradients
    kernels = Kernels(device, profile, training.precision, gradients, run)
    p = Pricer(kernels, profile, shape, arch.hidden, run)
    axes = {"tp": shape.tp, "ep": shape.axis("ep"), "etp": shape.axis("etp")}
    weights = [weights_of(t, arch, axes) for t in component_tensors(arch)]
    works = [layer_work(p, kind) for kind in arch.kinds]
    works.append(mtp_work(p, arch, training) if arch.mtp_layers else _nothing(p))
    works += [embedding_work(p), head_work(p, arch, training)]
    if (shape.axis("shards") > 1).any() or (shape.axis("expert_shards") > 1).any():
        works = [
            sharded(p, work, w, optimizer) if work.forward else work
            for work, w in zip(works, weights, strict=True)
        ]
    ends = ("mtp", "head", "head")
    works[-3:] = [w.as_part(n) for w, n in zip(works[-3:], ends, strict=True)]
    ones = np.ones_like(shape.tp)
    return Components(
        forward=np.stack([w.forward_time * ones for w in works]),
        backward=np.stack([w.backward_time * ones for w in works]),
        weight=np.stack([w.weight * ones for w in works]),
        parts=np.stack([np.stack([_part(w, x) * ones for w in works]) for x in PARTS]),
        dense=np.stack([w.dense * ones for w in weights]),
        expert=np.stack([w.expert * ones for w in weights]),
        message=shape.own_tokens * arch.hidden * WIDTH,
    )


def _nothing(p: Pricer) -> Work:
    return Work()


def _part(work: Work, name: str) -> Floats | float:
    return work.forward.get(name, 0.0) + work.backward.get(name, 0.0)
