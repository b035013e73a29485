"""Rules of the dispatch of tokens to experts, and of experts with biases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    FALSE,
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
from .sources import CONFIG, DISPATCHER, MOE_LAYER, SHARED

if TYPE_CHECKING:
    from .facts import Facts

_DISPATCHER = "moe_token_dispatcher_type"


def _truth(holds: bool) -> Expr:
    return TRUE if holds else FALSE


def _dispatcher(facts: Facts) -> Expr:
    return facts.known(_DISPATCHER) if facts.sizes.moe else TRUE


def _deepep(facts: Facts) -> Expr:
    flex = facts.says(_DISPATCHER, "flex")
    deepep = facts.says("moe_flex_dispatcher_backend", "deepep")
    return implies(facts.on("moe_enable_deepep"), both(flex, deepep))


def _deepep_padding(facts: Facts) -> Expr:
    deepep = either(
        facts.on("moe_enable_deepep"),
        facts.says("moe_flex_dispatcher_backend", "deepep"),
    )
    flex = both(facts.says(_DISPATCHER, "flex"), deepep)
    return negate(both(flex, facts.on("moe_pad_expert_input_to_capacity")))


def _flex_group(facts: Facts) -> Expr:
    d = facts.dims
    flex = facts.says(_DISPATCHER, "flex") if facts.sizes.moe else FALSE
    return implies(flex, at_least(d.etp * d.ep, 2))


def _flex_backend(facts: Facts) -> Expr:
    flex = facts.says(_DISPATCHER, "flex") if facts.sizes.moe else FALSE
    return implies(flex, facts.known("moe_flex_dispatcher_backend"))


def _shared_overlap(facts: Facts) -> Expr:
    if not facts.sizes.shared_ffn:
        return TRUE
    by_all = facts.says(_DISPATCHER, "alltoall")
    return implies(facts.on("moe_shared_expert_overlap"), by_all)


def _bias(facts: Facts) -> Expr:
    biased = facts.sizes.moe and facts.sizes.bias
    return equals(facts.dims.etp, 1) if biased else TRUE


def _bias_forward(facts: Facts) -> Expr:
    """Without expert parallelism the output is its input, and not to be changed."""
    sizes = facts.sizes
    if not (sizes.moe and sizes.bias):
        return TRUE
    return either(facts.on("moe_grouped_gemm"), at_least(facts.dims.ep, 2))


def _padded_for_fp8(facts: Facts) -> Expr:
    asked = facts.on("moe_router_padding_for_quantization")
    quantized = either(negate(facts.says("fp8", "none")), facts.on("fp4"))
    return implies(asked, quantized)


def _padded_dispatcher(facts: Facts) -> Expr:
    asked = facts.on("moe_router_padding_for_quantization")
    return implies(asked, negate(facts.says(_DISPATCHER, "allgather")))


def _lengths(facts: Facts) -> Expr:
    gathers = facts.says(_DISPATCHER, "allgather")
    return negate(both(gathers, facts.on("variable_seq_lengths")))


DISPATCH = (
    Rule(
        id="dispatcher",
        sentence="the dispatcher of tokens is allgather, alltoall or flex",
        source=f"{MOE_LAYER}, MoELayer",
        body=_dispatcher,
        where="build",
    ),
    Rule(
        id="deepep",
        sentence="DeepEP is a backend of the flex dispatcher, and then its only one",
        source=f"{CONFIG}: moe_enable_deepep",
        body=_deepep,
        where="config",
    ),
    Rule(
        id="deepep-padding",
        sentence="DeepEP excludes padding to capacity",
        source=f"{CONFIG}: moe_pad_expert_input_to_capacity",
        body=_deepep_padding,
        where="config",
    ),
    Rule(
        id="deepep-group",
        sentence="the flex dispatcher needs etp * ep > 1",
        source=DISPATCHER,
        body=_flex_group,
        where="build",
    ),
    Rule(
        id="flex-backend",
        sentence="the backend of the flex dispatcher is deepep or hybridep",
        source=DISPATCHER,
        body=_flex_backend,
        where="build",
        since="0.16",
    ),
    Rule(
        id="shared-overlap",
        sentence="overlapping the shared experts needs the alltoall dispatcher",
        source=f"{CONFIG}: moe_shared_expert_overlap",
        body=_shared_overlap,
        where="config",
    ),
    Rule(
        id="lengths-allgather",
        sentence="sequences of varying length exclude the allgather dispatcher",
        source=f"{CONFIG}: variable_seq_lengths, dense models too",
        body=_lengths,
        where="config",
    ),
    Rule(
        id="router-padding",
        sentence="padding the routing for quantization needs FP8 or FP4",
        source=f"{CONFIG}: moe_router_padding_for_quantization",
        body=_padded_for_fp8,
        where="config",
    ),
    Rule(
        id="router-padding-dispatcher",
        sentence="padding the routing for quantization excludes the allgather "
        "dispatcher",
        source=f"{CONFIG}: moe_router_padding_for_quantization",
        body=_padded_dispatcher,
        where="config",
    ),
    Rule(
        id="etp-bias",
        sentence="experts with biases need etp = 1",
        source=f"{CONFIG}: add_bias_linear",
        body=_bias,
        where="config",
        since="0.15",
    ),
    Rule(
        id="shared-bias",
        sentence="shared experts have no biases",
        source=SHARED,
        body=lambda f: _truth(not (f.sizes.bias and f.sizes.shared_ffn)),
        where="build",
    ),
    Rule(
        id="bias-alone",
        sentence="experts with biases and without grouped GEMM need ep > 1: the bias "
        "is added in place, to what autograd forbids to change",
        source="megatron-core 0.16.1 megatron/core/transformer/mlp.py, MLP.forward: "
        "per_token_scale; RowParallelLinear.forward: explicit_expert_comm",
        body=_bias_forward,
        where="first forward",
        checker="step",
    ),
)
