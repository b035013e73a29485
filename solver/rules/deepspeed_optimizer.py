"""Rules of DeepSpeed's gradients, master weights and optimizers under ZeRO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import Expr, at_least, both, either, equals, implies, negate
from .deepspeed import DS, ENGINE, deepspeed_rule
from .deepspeed_zero import by_bf16_optimizer, by_stage_12, offloads

if TYPE_CHECKING:
    from .facts import Facts

_ZERO = f"{DS}runtime/zero/config.py, DeepSpeedZeroConfig"
_CONFIG = f"{DS}runtime/config.py, DeepSpeedConfig._do_error_check"
_STAGE_12 = f"{DS}runtime/zero/stage_1_and_2.py, DeepSpeedZeroOptimizer"
_STAGE_3 = f"{DS}runtime/zero/stage3.py, DeepSpeedZeroOptimizer_Stage3"
_NORM = "zero_optimization.compute_grad_norm"
_HALF = "fp16.fp16_master_weights_and_grads"
_BRAIN = "bf16.bf16_master_weights_and_grads"
_STATES = "bf16.bf16_optimizer_states"


def _norm_stage(facts: Facts) -> Expr:
    stage = facts.dims.sharding
    return either(facts.on(_NORM), equals(stage, 1), equals(stage, 2))


def _norm_kept(facts: Facts) -> Expr:
    needs = both(negate(facts.on("clipped_gradients")), negate(offloads(facts)))
    return implies(both(negate(facts.on(_NORM)), by_stage_12(facts)), needs)


def _norm_bf16(facts: Facts) -> Expr:
    return either(facts.on(_NORM), negate(by_bf16_optimizer(facts)))


def _masters(facts: Facts) -> Expr:
    asked = either(facts.on(_HALF), facts.on(_BRAIN), facts.on(_STATES))
    return implies(asked, at_least(facts.dims.sharding, 1))


def _states(facts: Facts) -> Expr:
    return implies(facts.on(_STATES), facts.on(_BRAIN))


def _master_optimizer(facts: Facts) -> Expr:
    """Ask for DeepSpeed's own optimizer on the host, unless its states are bf16."""
    stage = facts.dims.sharding
    asked = either(facts.on(_HALF), both(facts.on(_BRAIN), negate(facts.on(_STATES))))
    reached = either(equals(stage, 3), by_stage_12(facts))
    own = both(offloads(facts), facts.says("optimizer", "deepspeed"))
    return implies(both(asked, reached), own)


def _tested(facts: Facts) -> Expr:
    known = facts.says("optimizer", "deepspeed", "adamw", "adagrad")
    untested = facts.on("zero_allow_untested_optimizer")
    return implies(at_least(facts.dims.sharding, 1), either(known, untested))


def _host_optimizer(facts: Facts) -> Expr:
    forced = facts.on("zero_force_ds_cpu_optimizer")
    own = facts.says("optimizer", "deepspeed")
    return implies(both(offloads(facts), forced), own)


def _sum(facts: Facts) -> Expr:
    alone = both(
        negate(equals(facts.dims.sharding, 3)),
        negate(facts.on("compile.deepcompile")),
    )
    return implies(facts.says("gradient_allreduce_op", "sum"), alone)


def _scaled(facts: Facts) -> Expr:
    reduced = facts.on("zero_optimization.reduce_scatter")
    changed = either(facts.on("prescale_gradients"), facts.on("predivided_gradients"))
    return implies(both(at_least(facts.dims.sharding, 2), reduced), negate(changed))


def _quantized(facts: Facts) -> Expr:
    asked = facts.on("zero_optimization.zero_quantized_gradients")
    reduced = facts.on("zero_optimization.reduce_scatter")
    return implies(both(asked, equals(facts.dims.sharding, 3)), reduced)


OPTIMIZERS = (
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
        f"{ENGINE}._do_optimizer_sanity_check",
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
        "optimizer-tested",
        "ZeRO with an optimizer it was not tested with needs "
        "zero_allow_untested_optimizer",
        f"{ENGINE}._do_optimizer_sanity_check",
        _tested,
        where="build",
    ),
    deepspeed_rule(
        "optimizer-host",
        "an offloaded optimizer is DeepSpeed's own, unless "
        "zero_force_ds_cpu_optimizer is off",
        f"{ENGINE}._configure_optimizer: ZeRORuntimeException",
        _host_optimizer,
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
)
