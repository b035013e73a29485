"""Rules of DeepSpeed's number formats and of its accumulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import Expr, at_least, both, either, equals, implies, negate
from .deepspeed import CONFIG, DS, ENGINE, deepspeed_rule

if TYPE_CHECKING:
    from .facts import Facts


def _precision(facts: Facts) -> Expr:
    return negate(both(facts.on("fp16.enabled"), facts.on("bf16.enabled")))


def _loss_scale(facts: Facts) -> Expr:
    positive = both(
        at_least(facts.option("fp16.loss_scale_window"), 1),
        at_least(facts.option("fp16.min_loss_scale"), 1),
    )
    dynamic = both(facts.on("fp16.enabled"), facts.on("fp16.dynamic_loss_scale"))
    return both(facts.on("fp16.loss_scale_known"), implies(dynamic, positive))


def model_type(facts: Facts) -> dict[str, Expr]:
    """Return for each number format whether the model is in it; FP16 goes first."""
    half, brain = facts.on("fp16.enabled"), facts.on("bf16.enabled")
    return {
        "fp16": half,
        "bf16": both(negate(half), brain),
        "fp32": both(negate(half), negate(brain)),
    }


def accumulates_in(facts: Facts, name: str) -> Expr:
    """Whether gradients are accumulated in a number format."""
    option = "data_types.grad_accum_dtype"
    by_model = both(facts.says(option, "auto"), model_type(facts)[name])
    return either(facts.says(option, name), by_model)


def _parameters(facts: Facts) -> Expr:
    option = "data_types.param_dtype"
    same = (both(facts.says(option, n), is_) for n, is_ in model_type(facts).items())
    return either(facts.says(option, "auto"), *same)


def _accumulation(facts: Facts) -> Expr:
    same = (
        both(accumulates_in(facts, name), is_)
        for name, is_ in model_type(facts).items()
    )
    return either(at_least(facts.dims.sharding, 1), *same)


def _managed(facts: Facts) -> Expr:
    d = facts.dims
    overlaps = facts.says("zero_optimization.overlap_comm", "on")
    # Left alone, overlap is on with ZeRO-3, which shards gradients too.
    held = both(
        either(at_least(d.sharding, 2), negate(overlaps)),
        equals(d.pp, 1),
        negate(facts.on("compile.deepcompile")),
    )
    return either(facts.on("managed_gradient_accumulation"), held)


PRECISIONS = (
    deepspeed_rule(
        "fp16-bf16",
        "fp16 and bf16 exclude each other",
        f"{CONFIG}._initialize_params",
        _precision,
    ),
    deepspeed_rule(
        "loss-scale",
        "the loss scale is a number of at least 0, and a dynamic one has a window and "
        "a least scale above 0",
        f"{DS}runtime/precision_config.py, DeepSpeedFP16Config",
        _loss_scale,
    ),
    deepspeed_rule(
        "parameter-type",
        "the type of the parameters, where given, is that of fp16 or bf16, fp32 "
        "without them",
        f"{ENGINE}._assert_valid_mixed_precision_config",
        _parameters,
        where="build",
    ),
    deepspeed_rule(
        "accumulation-type",
        "without ZeRO, gradients are accumulated in the type of the model",
        f"{ENGINE}._do_optimizer_sanity_check: unsupported mix",
        _accumulation,
        where="build",
    ),
    deepspeed_rule(
        "managed-accumulation",
        "accumulation that the caller manages needs pp = 1, no DeepCompile, and ZeRO "
        "of at least stage 2 to overlap communication",
        f"{ENGINE}._do_sanity_check: managed_gradient_accumulation",
        _managed,
        where="build",
    ),
    deepspeed_rule(
        "communication-type",
        "the type of communication is fp16, bf16 or fp32",
        f"{CONFIG}: communication_data_type",
        lambda f: f.known("communication_data_type"),
    ),
    deepspeed_rule(
        "removed-keys",
        "no key is given that this release has removed: elasticity, nebula, amp, "
        "mics_shard_size and more",
        f"{CONFIG}: _reject_removed_config_keys",
        lambda f: negate(f.on("removed_key")),
    ),
)
