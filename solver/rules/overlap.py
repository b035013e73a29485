"""Rules of overlapped communication and deferred gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    TRUE,
    Expr,
    at_least,
    both,
    either,
    equals,
    implies,
    negate,
)
from .rule import Rule
from .sources import CONFIG, LAUNCHER, PARALLEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from .facts import Facts

_EXPERTS = "overlap_moe_expert_parallel_comm"
_DEFER = "defer_embedding_wgrad_compute"


def _needs(flag: str, law: Callable[[Facts], Expr]) -> Callable[[Facts], Expr]:
    """Hold a law where a flag is on."""
    return lambda facts: implies(facts.on(flag), law(facts))


def _chunks(facts: Facts) -> Expr:
    return either(equals(facts.dims.pp, 1), facts.interleaved)


def _no_full(facts: Facts) -> Expr:
    method = facts.says("recompute_method", "uniform", "block")
    stated = either(method, facts.says("recompute_count", "given"))
    unknown = negate(facts.known("recompute_method"))
    return negate(either(facts.full, stated, unknown))


def _predictions(facts: Facts) -> Expr:
    layers = facts.sizes.mtp_layers
    if layers is None:
        return TRUE
    return at_least(facts.dims.pp, 2) if layers == 1 else equals(layers, 1)


def _graphs(facts: Facts) -> Expr:
    scope = either(
        facts.has("cuda_graph_scope", "moe"), facts.has("cuda_graph_scope", "mlp")
    )
    engine = facts.says("cuda_graph_impl", "transformer_engine")
    graphed = negate(facts.says("cuda_graph_impl", "none"))
    return implies(graphed, both(engine, negate(scope)))


OVERLAP = (
    Rule(
        id="ep-a2a-overlap",
        sentence="overlapping the experts' all-to-all needs ep > 1",
        source=f"{CONFIG}: {_EXPERTS}",
        body=_needs(_EXPERTS, lambda f: at_least(f.dims.ep, 2)),
        where="config",
    ),
    Rule(
        id="ep-a2a-overlap-vpp",
        sentence="overlapping the experts' all-to-all needs virtual stages where "
        "pp > 1",
        source=f"{CONFIG}: {_EXPERTS}",
        body=_needs(_EXPERTS, _chunks),
        where="config",
    ),
    Rule(
        id="ep-a2a-overlap-dispatcher",
        sentence="overlapping the experts' all-to-all needs the alltoall or the flex "
        "dispatcher",
        source=f"{CONFIG}: {_EXPERTS}",
        body=_needs(
            _EXPERTS, lambda f: f.says("moe_token_dispatcher_type", "alltoall", "flex")
        ),
        where="config",
    ),
    Rule(
        id="ep-a2a-overlap-recompute",
        sentence="overlapping the experts' all-to-all excludes full recomputation, "
        "its method and its number of layers",
        source=f"{CONFIG}: {_EXPERTS}",
        body=_needs(_EXPERTS, _no_full),
        where="config",
    ),
    Rule(
        id="ep-a2a-overlap-precision",
        sentence="overlapping the experts' all-to-all needs bf16 or fp16",
        source=f"{CONFIG}: {_EXPERTS}",
        body=_needs(_EXPERTS, lambda f: f.says("precision", "bf16", "fp16")),
        where="config",
    ),
    Rule(
        id="ep-a2a-overlap-shared",
        sentence="overlapping the experts' all-to-all excludes overlapping the shared "
        "experts",
        source=f"{CONFIG}: {_EXPERTS}",
        body=_needs(_EXPERTS, lambda f: negate(f.on("moe_shared_expert_overlap"))),
        where="config",
    ),
    Rule(
        id="ep-a2a-overlap-mtp",
        sentence="overlapping the experts' all-to-all allows one prediction layer, "
        "and that with pp > 1",
        source=f"{CONFIG}: {_EXPERTS}",
        body=_needs(_EXPERTS, _predictions),
        where="config",
    ),
    Rule(
        id="ep-a2a-overlap-graph",
        sentence="overlapping the experts' all-to-all allows CUDA graphs of "
        "TransformerEngine alone, and those not over moe or mlp",
        source=f"{CONFIG}: {_EXPERTS}",
        body=_needs(_EXPERTS, _graphs),
        where="config",
        since="0.15",
    ),
    Rule(
        id="delay-wgrad",
        sentence="delayed weight gradients need the overlap of the experts' all-to-all",
        source=f"{CONFIG}: delay_wgrad_compute",
        body=_needs("delay_wgrad_compute", lambda f: f.on(_EXPERTS)),
        where="config",
    ),
    Rule(
        id="early-release",
        sentence="early release of attention memory needs the overlap of the experts' "
        "all-to-all",
        source=f"{CONFIG}: ep_overlap_early_attn_memory_release",
        body=_needs("ep_overlap_early_attn_memory_release", lambda f: f.on(_EXPERTS)),
        where="config",
        since="0.16",
    ),
    Rule(
        id="defer-embedding",
        sentence="deferring the embedding's weight gradient needs pp > 1",
        source=f"{PARALLEL}: {_DEFER}",
        body=_needs(_DEFER, lambda f: at_least(f.dims.pp, 2)),
        where="config",
    ),
    Rule(
        id="defer-embedding-fusion",
        sentence="deferring the embedding's weight gradient needs fused gradient "
        "accumulation",
        source=f"{PARALLEL}: {_DEFER}",
        body=_needs(_DEFER, lambda f: f.on("gradient_accumulation_fusion")),
        where="config",
    ),
    Rule(
        id="defer-embedding-limit",
        sentence="the limit of deferred weight gradients is at least 0",
        source=f"{PARALLEL}: wgrad_deferral_limit",
        body=_needs(_DEFER, lambda f: at_least(f.option("wgrad_deferral_limit"), 0)),
        where="config",
    ),
    Rule(
        id="tp-overlap",
        sentence="overlapping tensor-parallel communication needs sequence parallelism",
        source=f"{LAUNCHER}: tp_comm_overlap",
        body=_needs("tp_comm_overlap", lambda f: equals(f.dims.sp, 1)),
        where="launcher only",
        checker="launcher",
    ),
)
