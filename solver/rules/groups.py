"""Rules of the group algebra: the dense and the expert grid of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import TRUE, Expr, both, divides, equals
from .rule import Rule

if TYPE_CHECKING:
    from .rule import Facts

_STATE = "Megatron-LM megatron/core/parallel_state.py, initialize_model_parallel"


def _world_dense(facts: Facts) -> Expr:
    d = facts.dims
    return equals(d.tp * d.pp * d.cp * d.dp, facts.world)


def _world_expert(facts: Facts) -> Expr:
    d = facts.dims
    return equals(d.etp * d.ep * d.pp * d.edp, facts.world)


def _moe_only(facts: Facts) -> Expr:
    if facts.problem.architecture.is_moe:
        return TRUE
    return both(equals(facts.dims.ep, 1), equals(facts.dims.etp, 1))


def _experts(facts: Facts) -> Expr:
    moe = facts.problem.architecture.moe
    return divides(facts.dims.ep, moe.experts) if moe else TRUE


GROUPS = (
    Rule(
        id="world-dense",
        sentence="W = tp * pp * cp * dp with a whole dp >= 1 (W = {W})",
        source=_STATE,
        body=_world_dense,
        where="groups",
    ),
    Rule(
        id="world-expert",
        sentence="W = etp * ep * pp * edp with a whole edp >= 1 (W = {W})",
        source=f"{_STATE}, expert_tensor_model_pipeline_parallel_size",
        body=_world_expert,
        where="groups",
    ),
    Rule(
        id="ep-moe",
        sentence="a dense model has no expert parallelism: ep = 1 and etp = 1 "
        "(E = {E})",
        source="Megatron-LM megatron/core/transformer/transformer_config.py, "
        "__post_init__: expert parallelism needs num_moe_experts; etp has no "
        "meaning there and is pinned to 1",
        body=_moe_only,
        where="config",
    ),
    Rule(
        id="experts-ep",
        sentence="E % ep = 0: every expert-parallel rank holds equally many experts "
        "(E = {E})",
        source="Megatron-LM megatron/core/transformer/moe/moe_layer.py, BaseMoELayer",
        body=_experts,
        where="build",
    ),
)
