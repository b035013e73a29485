"""Rules of CUDA graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.dialects.megatron import OPTIONS
from ...models.expr import (
    Expr,
    at_most,
    both,
    either,
    equals,
    implies,
    negate,
)
from .rule import Rule
from .sources import CONFIG, LAUNCHER

if TYPE_CHECKING:
    from .facts import Facts

_IMPL, _SCOPE = "cuda_graph_impl", "cuda_graph_scope"
_WHOLE = 1 << OPTIONS[_SCOPE].labels.index("full_iteration")


def _graphed(facts: Facts, law: Expr) -> Expr:
    return implies(negate(facts.says(_IMPL, "none")), law)


def _scope(facts: Facts, label: str) -> Expr:
    return facts.has(_SCOPE, label)


def _part(facts: Facts, label: str) -> Expr:
    """Whether the router or what follows it is graphed; local takes both as one."""
    either_one = either(_scope(facts, "moe_router"), _scope(facts, "moe_preprocess"))
    return either(_scope(facts, label), both(facts.says(_IMPL, "local"), either_one))


def _experts_only(facts: Facts) -> Expr:
    graphed = either(_scope(facts, "moe"), _part(facts, "moe_router"))
    sparse = facts.sizes.moe and max(facts.sizes.experts, default=0) > 1
    return _graphed(facts, both() if sparse else negate(graphed))


def _dense_only(facts: Facts) -> Expr:
    sizes = facts.sizes
    covered = not sizes.moe or bool(sizes.dense_ffn)
    covered = covered or max(sizes.experts, default=0) <= 1
    return _graphed(facts, both() if covered else negate(_scope(facts, "mlp")))


def _drop_padding(facts: Facts) -> Expr:
    if not facts.sizes.moe:
        return both()
    padded = both(
        facts.says("moe_expert_capacity_factor", "given"),
        facts.on("moe_pad_expert_input_to_capacity"),
    )
    return _graphed(facts, either(padded, negate(_scope(facts, "moe"))))


def _no_sync(facts: Facts) -> Expr:
    if not facts.sizes.moe:
        return both()
    copies = both(
        facts.says("moe_expert_capacity_factor", "given"),
        negate(facts.on("moe_pad_expert_input_to_capacity")),
        facts.says("moe_token_dispatcher_type", "alltoall"),
    )
    return _graphed(facts, negate(both(copies, _part(facts, "moe_preprocess"))))


def _with_router(facts: Facts) -> Expr:
    after, router = _part(facts, "moe_preprocess"), _part(facts, "moe_router")
    return _graphed(facts, implies(after, router))


def _full_recompute(facts: Facts) -> Expr:
    whole = equals(facts.option(_SCOPE), _WHOLE)
    return _graphed(facts, implies(facts.full, whole))


def _recomputed_experts(facts: Facts) -> Expr:
    engine = facts.says(_IMPL, "transformer_engine")
    moe = both(engine, facts.module("moe"), _scope(facts, "moe_router"))
    return _graphed(facts, negate(moe))


def _no_dropout(facts: Facts) -> Expr:
    whole = either(equals(facts.option(_SCOPE), 0), _scope(facts, "full_iteration"))
    drawn = [("core_attn", "attn"), ("mlp", "mlp"), ("moe", "moe")]
    graphed = [
        both(facts.module(module), either(whole, _scope(facts, scope)))
        for module, scope in drawn
    ]
    return _graphed(facts, negate(both(facts.on("dropout"), either(*graphed))))


def _local_experts(facts: Facts) -> Expr:
    padded = facts.on("moe_pad_experts_for_cuda_graph_inference")
    local = facts.says(_IMPL, "local")
    return implies(local, either(at_most(facts.dims.ep, 1), padded))


GRAPHS = (
    Rule(
        id="graph-names",
        sentence="CUDA graphs are made by local or transformer_engine, over scopes "
        "they know",
        source=f"{CONFIG}: {_IMPL}, {_SCOPE}",
        body=lambda f: both(f.known(_IMPL), f.known(_SCOPE)),
        where="config",
        since="0.15",
    ),
    Rule(
        id="graph-offload",
        sentence="CUDA graphs exclude layer-wise offload",
        source=f"{CONFIG}: {_IMPL}",
        body=lambda f: _graphed(f, negate(f.on("cpu_offloading"))),
        where="config",
        since="0.15",
    ),
    Rule(
        id="graph-iteration",
        sentence="TransformerEngine graphs no full iteration",
        source=f"{CONFIG}: {_SCOPE}",
        body=lambda f: implies(
            f.says(_IMPL, "transformer_engine"), negate(_scope(f, "full_iteration"))
        ),
        where="config",
        since="0.15",
    ),
    Rule(
        id="graph-moe-router",
        sentence="CUDA graphs cover moe or moe_router, not both",
        source=f"{CONFIG}: {_SCOPE}",
        body=lambda f: _graphed(
            f, negate(both(_scope(f, "moe"), _part(f, "moe_router")))
        ),
        where="config",
        since="0.16",
    ),
    Rule(
        id="graph-preprocess",
        sentence="CUDA graphs of moe_preprocess need those of moe_router",
        source=f"{CONFIG}: {_SCOPE}",
        body=_with_router,
        where="config",
        since="0.16",
    ),
    Rule(
        id="graph-moe",
        sentence="CUDA graphs of moe and moe_router need more than one expert (E = "
        "{E})",
        source=f"{CONFIG}: {_SCOPE}",
        body=_experts_only,
        where="config",
        since="0.16",
    ),
    Rule(
        id="graph-mlp",
        sentence="CUDA graphs of mlp need a dense layer",
        source=f"{CONFIG}: {_SCOPE}",
        body=_dense_only,
        where="config",
        since="0.16",
    ),
    Rule(
        id="graph-padding",
        sentence="CUDA graphs of moe need padding to capacity",
        source=f"{CONFIG}: {_SCOPE}",
        body=_drop_padding,
        where="config",
        since="0.16",
    ),
    Rule(
        id="graph-sync",
        sentence="CUDA graphs of moe_preprocess exclude dropping without padding by "
        "the alltoall dispatcher, which copies to the host",
        source=f"{CONFIG}: {_SCOPE}",
        body=_no_sync,
        where="config",
        since="0.16",
    ),
    Rule(
        id="graph-full-recompute",
        sentence="full recomputation allows CUDA graphs of the full iteration alone",
        source=f"{CONFIG}: recompute_granularity",
        body=_full_recompute,
        where="config",
        since="0.15",
    ),
    Rule(
        id="graph-recompute-moe",
        sentence="recomputing moe excludes TransformerEngine's graphs of moe_router",
        source=f"{CONFIG}: recompute_modules",
        body=_recomputed_experts,
        where="config",
        since="0.16",
    ),
    Rule(
        id="graph-dropout",
        sentence="dropout excludes recomputing a module inside a CUDA graph",
        source=f"{CONFIG}: attention_dropout, hidden_dropout",
        body=_no_dropout,
        where="config",
        since="0.15",
    ),
    Rule(
        id="graph-local-ep",
        sentence="local CUDA graphs with ep > 1 need experts padded for inference",
        source=f"{LAUNCHER}: moe_pad_experts_for_cuda_graph_inference",
        body=_local_experts,
        where="launcher only",
        checker="launcher",
        since="0.15",
    ),
)
