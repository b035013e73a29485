"""Rules of recomputation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    FALSE,
    TRUE,
    Expr,
    at_least,
    at_most,
    both,
    divides,
    either,
    equals,
    exact_div,
    implies,
    maximum,
    negate,
    table,
)
from ...models.layout import RECOMPUTE_FULL, RECOMPUTE_MODULES
from .rule import Rule
from .sources import CONFIG, LAUNCHER, MTP
from .stages import chunk_layers

if TYPE_CHECKING:
    from .facts import Facts


def _granularity(facts: Facts) -> Expr:
    return facts.known("recompute_granularity")


def _method(facts: Facts) -> Expr:
    return implies(facts.recomputes, facts.known("recompute_method"))


def _full(facts: Facts) -> Expr:
    method = negate(facts.says("recompute_method", "none"))
    number = negate(facts.says("recompute_count", "none"))
    return implies(facts.full, both(method, number))


def _selective_count(facts: Facts) -> Expr:
    return implies(facts.selective, negate(facts.says("recompute_count", "given")))


def _selective_method(facts: Facts) -> Expr:
    plain = facts.says("recompute_method", "auto", "none")
    return implies(facts.selective, plain)


def _modules(facts: Facts) -> Expr:
    latent = TRUE if facts.sizes.latent else FALSE
    return both(
        implies(facts.selective, negate(facts.on("unknown_recompute_module"))),
        implies(facts.module("moe_act"), facts.on("moe_grouped_gemm")),
        implies(facts.module("mla_up_proj"), latent),
    )


def _present(facts: Facts) -> Expr:
    """Look up which sets of modules the model has something to recompute for."""
    sizes = facts.sizes
    has = {
        "core_attn": True,
        "layernorm": sizes.latent or sizes.moe,
        "mla_up_proj": sizes.latent,
        "mlp": bool(sizes.dense_ffn),
        "moe": sizes.moe,
        "moe_act": sizes.moe,
        "shared_experts": bool(sizes.shared_ffn),
    }
    allowed = sum(1 << i for i, name in enumerate(RECOMPUTE_MODULES) if has[name])
    legal = [int(code & ~allowed == 0) for code in range(RECOMPUTE_FULL)]
    legal += [1] * (facts.dims.recompute.hi + 1 - RECOMPUTE_FULL)
    return table(facts.dims.recompute, legal)


def _shared_overlap(facts: Facts) -> Expr:
    both_on = both(
        facts.module("shared_experts"), facts.on("moe_shared_expert_overlap")
    )
    return negate(both_on) if facts.sizes.shared_ffn else TRUE


def _fp8(facts: Facts) -> Expr:
    scaled = both(
        negate(facts.says("fp8", "none")), facts.says("fp8_recipe", "delayed")
    )
    chosen = either(facts.module("moe_act"), facts.module("layernorm"))
    return negate(both(scaled, chosen))


def _distributed(facts: Facts) -> Expr:
    method = negate(facts.says("recompute_method", "none"))
    apart = both(at_least(facts.dims.tp, 2), facts.full, method)
    return implies(facts.on("distribute_saved_activations"), apart)


def _distributed_sequence(facts: Facts) -> Expr:
    asked = both(facts.on("distribute_saved_activations"), facts.recomputes)
    return implies(asked, equals(facts.dims.sp, 0))


def _predictions(facts: Facts) -> Expr:
    uniform = both(facts.full, facts.says("recompute_method", "uniform"))
    single = equals(facts.option("recompute_num_layers"), 1)
    return implies(uniform, single) if facts.sizes.mtp_layers else TRUE


def _whole_groups(facts: Facts) -> Expr:
    uniform = both(facts.full, facts.says("recompute_method", "uniform"))
    group = maximum(facts.option("recompute_num_layers"), 1)
    # The planner's own splits are held to it chunk by chunk, by recompute-groups.
    if group.constant == 1 or facts.structures.planned:
        return TRUE
    return implies(uniform, both(*(divides(group, n) for n in chunk_layers(facts))))


def _no_biased_output(facts: Facts) -> Expr:
    """Ask for no checkpoint whose outputs hold a parameter: the bias of the last layer.

    FP8 and FP4 take TransformerEngine's checkpoint instead.
    """
    sizes = facts.sizes
    if not (sizes.bias and sizes.dense_ffn):
        return TRUE
    plain = both(facts.says("fp8", "none"), negate(facts.on("fp4")))
    return negate(both(facts.module("mlp"), plain))


def _not_clipped(facts: Facts) -> Expr:
    """Compare with an even chunk, rounded down."""
    d = facts.dims
    chunk = exact_div(facts.sizes.layers, d.pp * d.vpp)
    few = at_most(facts.option("recompute_num_layers"), chunk)
    asked = both(facts.full, facts.says("recompute_count", "given"))
    return implies(asked, few)


RECOMPUTE = (
    Rule(
        id="recompute-granularity",
        sentence="the granularity of recomputation is selective or full",
        source=f"{CONFIG}: recompute_granularity",
        body=_granularity,
        where="config",
    ),
    Rule(
        id="recompute-method",
        sentence="the method of recomputation is uniform or block",
        source=f"{CONFIG}: recompute_method",
        body=_method,
        where="config",
    ),
    Rule(
        id="recompute-full",
        sentence="full recomputation needs a method and a number of layers",
        source=f"{CONFIG}: recompute_num_layers",
        body=_full,
        where="config",
    ),
    Rule(
        id="recompute-count",
        sentence="selective recomputation takes no number of layers",
        source=f"{CONFIG}: recompute_num_layers",
        body=_selective_count,
        where="config",
    ),
    Rule(
        id="recompute-selective-method",
        sentence="selective recomputation takes no method",
        source=f"{LAUNCHER}: recompute_method",
        body=_selective_method,
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="recompute-selective",
        sentence="selective recomputation names known modules; moe_act needs grouped "
        "GEMM, mla_up_proj latent attention",
        source=f"{CONFIG}: recompute_modules",
        body=_modules,
        where="config",
    ),
    Rule(
        id="recompute-present",
        sentence="selective recomputation is written with modules the model has: mlp "
        "needs a dense layer, moe and moe_act experts, shared_experts shared experts, "
        "layernorm a norm that is not fused into the projection behind it (before "
        "experts, or of latent attention)",
        source="this planner: a module that is not there changes nothing, though "
        "Megatron accepts it",
        body=_present,
        where="never",
        checker="product",
    ),
    Rule(
        id="recompute-shared",
        sentence="recomputed shared experts are not overlapped",
        source=f"{CONFIG}: moe_shared_expert_overlap",
        body=_shared_overlap,
        where="config",
    ),
    Rule(
        id="recompute-fp8",
        sentence="recomputing layernorm or moe_act excludes FP8 with delayed scaling",
        source=f"{CONFIG}: fp8_recipe",
        body=_fp8,
        where="config",
    ),
    Rule(
        id="distribute-saved",
        sentence="distributing saved activations needs tp > 1 and full recomputation "
        "with a method",
        source=f"{LAUNCHER}: distribute_saved_activations",
        body=_distributed,
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="distribute-saved-sp",
        sentence="distributing saved activations excludes sequence parallelism",
        source=f"{CONFIG}: distribute_saved_activations",
        body=_distributed_sequence,
        where="config",
    ),
    Rule(
        id="recompute-mtp",
        sentence="with prediction layers, full uniform recomputation is by 1 layer",
        source=f"{MTP}, MultiTokenPredictionLayer._checkpointed_forward",
        body=_predictions,
        where="first forward",
        checker="step",
    ),
    Rule(
        id="recompute-uniform",
        sentence="full uniform recomputation goes by a number of layers that divides "
        "those of every chunk: past its last layer the index is out of range (L = {L})",
        source="megatron-core 0.16.1 megatron/core/transformer/transformer_block.py, "
        "TransformerBlock._checkpointed_forward: custom(layer_idx, layer_idx + "
        "recompute_num_layers)",
        body=_whole_groups,
        where="first forward",
        checker="step",
    ),
    Rule(
        id="recompute-bias",
        sentence="recomputing mlp excludes biases in dense layers: the bias is an "
        "output of what is checkpointed, whose backward then calls itself without end",
        source="megatron-core 0.16.1 megatron/core/tensor_parallel/random.py, "
        "CheckpointFunction.backward; transformer/mlp.py, MLP.forward: output_bias",
        body=_no_biased_output,
        where="first forward",
        checker="step",
    ),
    Rule(
        id="recompute-clipped",
        sentence="a number of recomputed layers above those of a chunk is cut down "
        "without a word (L = {L})",
        source="megatron-core 0.16.1 megatron/core/transformer/transformer_block.py, "
        "TransformerBlock._checkpointed_forward: counts per chunk",
        body=_not_clipped,
        where="never",
        checker="step",
        kind="advice",
    ),
)
