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
from .deepspeed import DS, ENGINE, deepspeed_rule
from .deepspeed_precision import accumulates_in, model_type

if TYPE_CHECKING:
    from .facts import Facts

_ZERO = f"{DS}runtime/zero/config.py, DeepSpeedZeroConfig"
_STAGE_12 = f"{DS}runtime/zero/stage_1_and_2.py, DeepSpeedZeroOptimizer"
_STAGE_3 = f"{DS}runtime/zero/stage3.py, DeepSpeedZeroOptimizer_Stage3"
_OPTIMIZER = "zero_optimization.offload_optimizer.device"
_PARAMETERS = "zero_optimization.offload_param.device"


def offloads(facts: Facts) -> Expr:
    """Whether the optimizer is told to lie on the host."""
    return negate(facts.says(_OPTIMIZER, "none"))


def by_bf16_optimizer(facts: Facts) -> Expr:
    """Whether stage 1 is taken by the optimizer of bf16 with fp32 accumulation."""
    mixed = both(model_type(facts)["bf16"], accumulates_in(facts, "fp32"))
    return both(equals(facts.dims.sharding, 1), mixed, negate(offloads(facts)))


def by_stage_12(facts: Facts) -> Expr:
    """Whether the optimizer of ZeRO stages 1 and 2 is built."""
    stage = facts.dims.sharding
    chosen = either(equals(stage, 1), equals(stage, 2))
    return both(chosen, negate(by_bf16_optimizer(facts)))


def _stage(facts: Facts) -> Expr:
    known = at_most(facts.dims.sharding, 3)
    return both(known, negate(facts.on("zero_optimization.unknown_stage")))


def _pipeline(facts: Facts) -> Expr:
    return either(equals(facts.dims.pp, 1), at_most(facts.dims.sharding, 1))


def _partial(facts: Facts) -> Expr:
    asked = facts.on("zero_optimization.offload_optimizer.partial")
    return implies(asked, equals(facts.dims.sharding, 3))


def _path(facts: Facts) -> Expr:
    asked = both(equals(facts.dims.sharding, 3), facts.says(_PARAMETERS, "nvme"))
    return implies(asked, facts.on("zero_optimization.offload_param.path"))


def _legacy(facts: Facts) -> Expr:
    asked = both(
        facts.on("zero_optimization.legacy_stage1"),
        negate(by_bf16_optimizer(facts)),
    )
    return implies(asked, equals(facts.dims.sharding, 0))


def _secondary(facts: Facts) -> Expr:
    number = facts.option("zero_optimization.zero_hpz_partition_size")
    asked = both(equals(facts.dims.sharding, 3), at_least(number, 2))
    part = minimum(maximum(number, 1), facts.sizes.world)
    return both(at_least(number, 0), implies(asked, divides(part, facts.sizes.world)))


def _ignored(facts: Facts) -> Expr:
    stage = facts.dims.sharding
    optimizer = either(negate(offloads(facts)), at_least(stage, 1))
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
        "pipeline-zero",
        "pipeline parallelism allows ZeRO of stage 1 at most",
        f"{DS}runtime/pipe/engine.py, PipelineEngine",
        _pipeline,
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
        f"{ENGINE}._configure_zero_optimizer: zero_legacy_stage1",
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
        "offload-ignored",
        "offload of the optimizer without ZeRO, and of parameters below stage 3, does "
        "nothing",
        f"{ENGINE}: accepted, and read by stages 1 to 3, and 3, alone",
        _ignored,
        where="never",
        checker="product",
        kind="advice",
    ),
)
