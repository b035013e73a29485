"""Rules of DeepSpeed's ZeRO and of its offload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    Expr,
    at_least,
    at_most,
    both,
    divides,
    either,
    equals,
    implies,
    maximum,
    minimum,
    negate,
)
from .deepspeed import DS, accumulates_in, deepspeed_rule, model_type

if TYPE_CHECKING:
    from .facts import Facts

_ZERO = f"{DS}runtime/zero/config.py, DeepSpeedZeroConfig"
_CONFIG = f"{DS}runtime/config.py, DeepSpeedConfig._do_error_check"
_ENGINE = f"{DS}runtime/engine.py, DeepSpeedEngine"
_STAGE_12 = f"{DS}runtime/zero/stage_1_and_2.py, DeepSpeedZeroOptimizer"
_STAGE_3 = f"{DS}runtime/zero/stage3.py, DeepSpeedZeroOptimizer_Stage3"
_NORM = "zero_optimization.compute_grad_norm"
_OPTIMIZER = "zero_optimization.offload_optimizer.device"
_PARAMETERS = "zero_optimization.offload_param.device"
_HALF = "fp16.fp16_master_weights_and_grads"
_BRAIN = "bf16.bf16_master_weights_and_grads"
_STATES = "bf16.bf16_optimizer_states"


def _offloads(facts: Facts) -> Expr:
    return negate(facts.says(_OPTIMIZER, "none"))


def _by_bf16_optimizer(facts: Facts) -> Expr:
    """Whether stage 1 is taken by the optimizer of bf16 with fp32 accumulation."""
    mixed = both(model_type(facts)["bf16"], accumulates_in(facts, "fp32"))
    return both(equals(facts.dims.sharding, 1), mixed, negate(_offloads(facts)))


def _by_stage_12(facts: Facts) -> Expr:
    stage = facts.dims.sharding
    chosen = either(equals(stage, 1), equals(stage, 2))
    return both(chosen, negate(_by_bf16_optimizer(facts)))


def _stage(facts: Facts) -> Expr:
    known = at_most(facts.dims.sharding, 3)
    return both(known, negate(facts.on("zero_optimization.unknown_stage")))


def _pipeline(facts: Facts) -> Expr:
    return either(equals(facts.dims.pp, 1), at_most(facts.dims.sharding, 1))


def _norm_stage(facts: Facts) -> Expr:
    stage = facts.dims.sharding
    return either(facts.on(_NORM), equals(stage, 1), equals(stage, 2))


def _norm_kept(facts: Facts) -> Expr:
    needs = both(negate(facts.on("clipped_gradients")), negate(_offloads(facts)))
    return implies(both(negate(facts.on(_NORM)), _by_stage_12(facts)), needs)


def _norm_bf16(facts: Facts) -> Expr:
    return either(facts.on(_NORM), negate(_by_bf16_optimizer(facts)))


def _partial(facts: Facts) -> Expr:
    asked = facts.on("zero_optimization.offload_optimizer.partial")
    return implies(asked, equals(facts.dims.sharding, 3))


def _sum(facts: Facts) -> Expr:
    alone = both(
        negate(equals(facts.dims.sharding, 3)),
        negate(facts.on("compile.deepcompile")),
    )
    return implies(facts.says("gradient_allreduce_op", "sum"), alone)


def _masters(facts: Facts) -> Expr:
    asked = either(facts.on(_HALF), facts.on(_BRAIN), facts.on(_STATES))
    return implies(asked, at_least(facts.dims.sharding, 1))


def _states(facts: Facts) -> Expr:
    return implies(facts.on(_STATES), facts.on(_BRAIN))


def _master_optimizer(facts: Facts) -> Expr:
    """Ask for DeepSpeed's own optimizer on the host, unless its states are bf16."""
    stage = facts.dims.sharding
    asked = either(facts.on(_HALF), both(facts.on(_BRAIN), negate(facts.on(_STATES))))
    reached = either(equals(stage, 3), _by_stage_12(facts))
    own = both(_offloads(facts), facts.says("optimizer", "deepspeed"))
    return implies(both(asked, reached), own)


def _tested(facts: Facts) -> Expr:
    known = facts.says("optimizer", "deepspeed", "adamw", "adagrad")
    untested = facts.on("zero_allow_untested_optimizer")
    return implies(at_least(facts.dims.sharding, 1), either(known, untested))


def _host_optimizer(facts: Facts) -> Expr:
    forced = facts.on("zero_force_ds_cpu_optimizer")
    own = facts.says("optimizer", "deepspeed")
    return implies(both(_offloads(facts), forced), own)


def _path(facts: Facts) -> Expr:
    asked = both(equals(facts.dims.sharding, 3), facts.says(_PARAMETERS, "nvme"))
    return implies(asked, facts.on("zero_optimization.offload_param.path"))


def _legacy(facts: Facts) -> Expr:
    asked = both(
        facts.on("zero_optimization.legacy_stage1"),
        negate(_by_bf16_optimizer(facts)),
    )
    return implies(asked, equals(facts.dims.sharding, 0))


def _secondary(facts: Facts) -> Expr:
    number = facts.option("zero_optimization.zero_hpz_partition_size")
    asked = both(equals(facts.dims.sharding, 3), at_least(number, 2))
    part = minimum(maximum(number, 1), facts.sizes.world)
    return both(at_least(number, 0), implies(asked, divides(part, facts.sizes.world)))


def _scaled(facts: Facts) -> Expr:
    reduced = facts.on("zero_optimization.reduce_scatter")
    changed = either(facts.on("prescale_gradients"), facts.on("predivided_gradients"))
    return implies(both(at_least(facts.dims.sharding, 2), reduced), negate(changed))


def _quantized(facts: Facts) -> Expr:
    asked = facts.on("zero_optimization.zero_quantized_gradients")
    reduced = facts.on("zero_optimization.reduce_scatter")
    return implies(both(asked, equals(facts.dims.sharding, 3)), reduced)


def _ignored(facts: Facts) -> Expr:
    stage = facts.dims.sharding
    optimizer = either(negate(_offloads(facts)), at_least(stage, 1))
    return both(optimizer, either(facts.says(_PARAMETERS, "none"), equals(stage, 3)))


ZERO = (
    deepspeed_rule(
        "zero-stage", "ZeRO has stages 0 to 3", f"{_ZERO}: ZeroStageEnum", _stage
    ),
    deepspeed_rule(
        "zero-keys",
        "the section of ZeRO has known keys alone",
        f"{_ZERO}: extra keys are forbidden",
        lambda f: negate(f.on("zero_optimization.unknown_key")),
    ),
    deepspeed_rule(
        "bucket",
        "a bucket of reduction holds at least one element",
        f"{_ZERO}: reduce_bucket_size",
        lambda f: at_least(f.option("zero_optimization.reduce_bucket_size"), 1),
    ),
    deepspeed_rule(
        "offload-device",
        "optimizer and parameters are offloaded to cpu, nvme or not at all",
        f"{DS}runtime/zero/offload_config.py, OffloadDeviceEnum",
        lambda f: both(f.known(_OPTIMIZER), f.known(_PARAMETERS)),
    ),
    deepspeed_rule(
        "offload-partial",
        "offload of a part of the optimizer needs ZeRO stage 3",
        f"{_ZERO}.offload_ratio_check",
        _partial,
    ),
    deepspeed_rule(
        "grad-norm-stage",
        "leaving the norm of gradients out needs ZeRO stage 1 or 2",
        f"{_ZERO}.compute_grad_norm_valid",
        _norm_stage,
    ),
    deepspeed_rule(
        "grad-norm",
        "leaving the norm of gradients out excludes clipping and an offloaded "
        "optimizer",
        f"{_STAGE_12}: compute_grad_norm",
        _norm_kept,
        where="build",
    ),
    deepspeed_rule(
        "grad-norm-bf16",
        "leaving the norm of gradients out excludes ZeRO stage 1 of bf16 with fp32 "
        "accumulation",
        f"{_ENGINE}._do_optimizer_sanity_check",
        _norm_bf16,
        where="build",
    ),
    deepspeed_rule(
        "reduce-op",
        "gradients are reduced by mean or sum",
        f"{DS}runtime/config.py, get_gradient_allreduce_op",
        lambda f: f.known("gradient_allreduce_op"),
    ),
    deepspeed_rule(
        "reduce-sum",
        "summed gradients exclude ZeRO stage 3 and DeepCompile",
        f"{_CONFIG}: gradient_allreduce_op",
        _sum,
    ),
    deepspeed_rule(
        "master-weights",
        "master weights and optimizer states in 16 bits need ZeRO",
        f"{_CONFIG}: bf16_master_weights_and_grads",
        _masters,
    ),
    deepspeed_rule(
        "optimizer-states",
        "optimizer states in bf16 need master weights in bf16",
        f"{_CONFIG}: bf16_optimizer_states",
        _states,
    ),
    deepspeed_rule(
        "master-optimizer",
        "master weights in 16 bits need DeepSpeed's optimizer on the host, unless its "
        "states are in bf16 too",
        f"{_STAGE_12}: Master weights feature; {_STAGE_3}",
        _master_optimizer,
        where="build",
    ),
    deepspeed_rule(
        "pipeline-zero",
        "pipeline parallelism allows ZeRO of stage 1 at most",
        f"{DS}runtime/pipe/engine.py, PipelineEngine",
        _pipeline,
        where="build",
    ),
    deepspeed_rule(
        "optimizer-tested",
        "ZeRO with an optimizer it was not tested with needs "
        "zero_allow_untested_optimizer",
        f"{_ENGINE}._do_optimizer_sanity_check",
        _tested,
        where="build",
    ),
    deepspeed_rule(
        "optimizer-host",
        "an offloaded optimizer is DeepSpeed's own, unless "
        "zero_force_ds_cpu_optimizer is off",
        f"{_ENGINE}._configure_optimizer: ZeRORuntimeException",
        _host_optimizer,
        where="build",
    ),
    deepspeed_rule(
        "nvme-path",
        "ZeRO stage 3 that offloads parameters to nvme needs a path",
        f"{DS}runtime/zero/partition_parameters.py, Init: nvme_path",
        _path,
        where="build",
    ),
    deepspeed_rule(
        "legacy-stage1",
        "the old implementation of ZeRO stage 1 is gone",
        f"{_ENGINE}._configure_zero_optimizer: zero_legacy_stage1",
        _legacy,
        where="build",
    ),
    deepspeed_rule(
        "hpz",
        "the secondary partition of ZeRO stage 3, cut to W, divides W (W = {W})",
        f"{DS}utils/groups.py, _create_zero_param_parallel_group",
        _secondary,
        where="build",
    ),
    deepspeed_rule(
        "scaled-gradients",
        "ZeRO of at least stage 2 with reduce_scatter excludes gradients scaled "
        "before their reduction",
        f"{_STAGE_12}: gradient_predivide_factor, postscale_gradients; {_STAGE_3}",
        _scaled,
        where="build",
    ),
    deepspeed_rule(
        "quantized-gradients",
        "quantized gradients of ZeRO stage 3 need reduce_scatter",
        f"{_STAGE_3}: all_to_all_reduce",
        _quantized,
        where="build",
    ),
    deepspeed_rule(
        "offload-ignored",
        "offload of the optimizer without ZeRO, and of parameters below stage 3, does "
        "nothing",
        f"{_ENGINE}: accepted, and read by stages 1 to 3, and 3, alone",
        _ignored,
        where="never",
        checker="product",
        kind="advice",
    ),
)
