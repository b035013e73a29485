"""Rules of mixtures of experts: widths, router, capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    FALSE,
    TRUE,
    Expr,
    implies,
)
from .rule import Rule
from .sources import CONFIG, LAUNCHER, SPECS

if TYPE_CHECKING:
    from .facts import Facts

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


def _capacity(facts: Facts) -> Expr:
    if facts.sizes.balancing in _BALANCED:
        return TRUE
    return facts.says(_FACTOR, "none")


def _padding(facts: Facts) -> Expr:
    padded = facts.on("moe_pad_expert_input_to_capacity")
    return implies(padded, facts.says(_FACTOR, "given"))


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
