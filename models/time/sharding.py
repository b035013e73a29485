"""What sharding gradients and weights costs in every micro-batch.

With zero-2 each micro-batch's gradients are scattered behind its backward; with
zero-3 weights are also gathered for the forward and again for the backward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .work import Floats, Work

if TYPE_CHECKING:
    from ..memory.optimizers import Recipe
    from .pricer import Pricer
    from .weights import Weights


def sharded(p: Pricer, work: Work, weights: Weights, recipe: Recipe) -> Work:
    """Add the sharding traffic that compute does not hide.

    Compute c and traffic t take (c^o + t^o)^(1/o) together, with the profile's
    exponent o.
    """
    shape, o = p.shape, p.profile.stack.sharding_overlap
    gathered = shape.axis("gathered")
    trained = 0.0 if p.run.workload == "lora" else 1.0
    ahead: Floats = np.zeros_like(shape.tp)
    back: Floats = np.zeros_like(shape.tp)
    dense = (weights.dense, shape.axis("shards"), shape.tp)
    apart = shape.axis("etp") * shape.axis("ep")
    for count, size, stride in (
        dense,
        (weights.expert, shape.axis("expert_shards"), apart),
    ):
        volumes = count * recipe.weights, count * recipe.gradients
        gather = shape.links.ring("all_gather", size, stride, volumes[0])
        scatter = shape.links.ring("reduce_scatter", size, stride, volumes[1])
        some = (count > 0).astype(np.float64)
        ahead = ahead + some * gathered * gather
        back = back + some * (gathered * gather + trained * scatter)
    exposed = [
        time * (np.power(1 + np.power(traffic / time, o), 1 / o) - 1)
        for time, traffic in ((work.forward_time, ahead), (work.backward_time, back))
    ]
    return work + Work({"dp": exposed[0]}, {"dp": exposed[1]})
