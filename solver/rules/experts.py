"""Rules of mixtures of experts: router, dispatcher, capacity, biases."""

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
from .sources import CONFIG, DISPATCHER, LAUNCHER, MOE_LAYER, SHARED, SPECS

if TYPE_CHECKING:
    from .facts import Facts

_DISPATCHER = "moe_token_dispatcher_type"
_FACTOR = "moe_expert_capacity_factor"
_BALANCED = ("aux_loss", "seq_aux_loss", "global_aux_loss", "none")


def _truth(holds: bool) -> Expr:
    return TRUE if holds else FALSE


def _width_alone(facts: Facts) -> Expr:
    return _truth(facts.sizes.moe or not facts.sizes.expert_ffn_given)


def _pattern(facts: Facts) -> Expr:
    length = facts.sizes.moe_pattern
    listed = facts.sizes.moe and length is not None
    return _truth(not listed or length == facts.sizes.layers)


def _router_groups(facts: Facts) -> Expr:
    sizes = facts.sizes
    if not sizes.router_group_topk:
        return TRUE
    groups = sizes.router_groups
    split = groups > 0 and all(e % groups == 0 for e in sizes.experts)
    return _truth(split and sizes.router_group_topk <= groups)


def _single_expert(facts: Facts) -> Expr:
    sizes = facts.sizes
    vanishes = sizes.topk == 1 and sizes.scoring == "softmax" and not sizes.pre_softmax
    return _truth(not vanishes or sizes.balancing == "sinkhorn")


def _score_bias(facts: Facts) -> Expr:
    return _truth(not facts.sizes.score_bias or facts.sizes.scoring == "sigmoid")


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


def _capacity(facts: Facts) -> Expr:
    if facts.sizes.balancing in _BALANCED:
        return TRUE
    return facts.says(_FACTOR, "none")


def _padding(facts: Facts) -> Expr:
    padded = facts.on("moe_pad_expert_input_to_capacity")
    return implies(padded, facts.says(_FACTOR, "given"))


def _shared_overlap(facts: Facts) -> Expr:
    if not facts.sizes.shared_ffn:
        return TRUE
    by_all = facts.says(_DISPATCHER, "alltoall")
    return implies(facts.on("moe_shared_expert_overlap"), by_all)


def _bias(facts: Facts) -> Expr:
    biased = facts.sizes.moe and facts.sizes.bias
    return equals(facts.dims.etp, 1) if biased else TRUE


def _bias_forward(facts: Facts) -> Expr:
    """Several experts of a rank add their biases themselves, a single one does not."""
    sizes, ep = facts.sizes, facts.dims.ep
    if not (sizes.moe and sizes.bias):
        return TRUE
    single = either(*(equals(ep, e) for e in sizes.experts))
    return either(facts.on("moe_grouped_gemm"), negate(single))


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


ROUTER = (
    Rule(
        id="expert-width",
        sentence="an expert's width is given with experts only",
        source=f"{CONFIG}: moe_ffn_hidden_size",
        body=_width_alone,
        where="config",
    ),
    Rule(
        id="expert-pattern",
        sentence="a list of sparse layers has one entry for each of the L layers (L = "
        "{L})",
        source=f"{SPECS}: moe_layer_freq",
        body=_pattern,
        where="build",
    ),
    Rule(
        id="shared-width",
        sentence="the width of the shared experts, where given, is above 0",
        source=f"{CONFIG}: moe_shared_expert_intermediate_size",
        body=lambda f: _truth(all(w > 0 for w in f.sizes.shared_ffn)),
        where="config",
    ),
    Rule(
        id="router-groups",
        sentence="group-limited routing divides the experts into groups and takes at "
        "most all of them (E = {E})",
        source=f"{CONFIG}: moe_router_num_groups, moe_router_group_topk",
        body=_router_groups,
        where="config",
    ),
    Rule(
        id="router-top1",
        sentence="top-1 routing takes its softmax before the choice, or the gradient "
        "is zero",
        source=f"{CONFIG}: moe_router_pre_softmax",
        body=_single_expert,
        where="config",
    ),
    Rule(
        id="router-bias",
        sentence="aux-loss-free balancing scores by sigmoid",
        source=f"{CONFIG}: moe_router_enable_expert_bias",
        body=_score_bias,
        where="config",
    ),
    Rule(
        id="capacity",
        sentence="a capacity factor needs balancing by an auxiliary loss, or none",
        source=f"{CONFIG}: {_FACTOR}",
        body=_capacity,
        where="config",
    ),
    Rule(
        id="capacity-padding",
        sentence="padding to capacity needs a capacity factor of at least 0",
        source=f"{CONFIG}: moe_pad_expert_input_to_capacity",
        body=_padding,
        where="config",
    ),
    Rule(
        id="mla-gqa",
        sentence="latent attention and grouped-query attention are not mixed in one "
        "model",
        source=f"{LAUNCHER}: multi_latent_attention, group_query_attention",
        body=lambda f: _truth(not f.sizes.latent_grouped),
        where="launcher only",
        checker="launcher",
    ),
)

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
        sentence="experts with biases and without grouped GEMM need more than one "
        "expert on a rank: ep is below E (E = {E})",
        source=f"{MOE_LAYER}, MoELayer.routed_experts_compute: mlp_bias",
        body=_bias_forward,
        where="first forward",
        checker="step",
    ),
)
