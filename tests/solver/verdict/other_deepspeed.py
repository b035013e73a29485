"""Configurations of DeepSpeed: two families a rule, and draws over all keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from other_deepspeed_bases import (
    CPU,
    base,
    batch_of,
    experts_of,
    heads_of,
    length_of,
    made,
    not_alone,
    on_case,
    put,
    then,
    two_of_three,
    world_of,
)
from other_deepspeed_zero import FAMILIES as ZERO

if TYPE_CHECKING:
    import random

    from other_deepspeed_bases import Case

FAMILIES: dict[str, tuple[Any, Any]] = {
    "world-dense": (
        made(world_of, tp=(2, 3), pp=(1, 2, 4)),
        made(tp=(1, 2, 3), pp=(1, 2, 4)),
    ),
    "world-expert": (
        made(experts_of(False, world=True), tp=1, dp=(3, 4, 6, 8)),
        made(experts_of(True, world=True), tp=1, dp=(2, 4, 6, 8)),
    ),
    "experts-ep": (
        made(experts_of(False, world=False), tp=1, dp=(2, 3, 4, 6, 8)),
        made(experts_of(True, world=False), tp=1, dp=(2, 3, 4, 6, 8)),
    ),
    "ep-tp": (
        made(
            then(
                on_case(experts=(4, 8)),
                put(expert_parallel={"enabled": True, "autoep_size": 2}),
            ),
            tp=2,
            dp=(2, 4, 6, 8),
        ),
        made(experts_of(True, world=True), tp=1, dp=(2, 4, 6, 8)),
    ),
    "batch": (made(batch_of), made(two_of_three)),
    "heads-cp": (
        made(heads_of(False), sp=(2, 3, 4, 6)),
        made(heads_of(True), sp=(2, 3, 4, 6)),
    ),
    "seq-cp": (
        made(length_of(False), sp=(2, 3, 4, 6)),
        made(length_of(True), sp=(2, 3, 4, 6)),
    ),
    "cp-alone": (
        made(not_alone, tp=2, pp=(1, 2)),
        made(sp=(2, 3, 4)),
    ),
    "fp16-bf16": (
        made(put(fp16__enabled=True, bf16__enabled=True)),
        made(put(fp16__enabled=(True, False), bf16__enabled=False), half=0),
    ),
    "loss-scale": (
        made(
            lambda rng, case: rng.choice(
                (
                    put(fp16__loss_scale=(-1, -0.5)),
                    put(fp16__loss_scale_window=(0, -2)),
                    put(fp16__min_loss_scale=(0, -1)),
                )
            )(rng, case),
            half=2,
        ),
        made(
            lambda rng, case: rng.choice(
                (
                    put(fp16__loss_scale=(0, 1, 128)),
                    put(fp16__loss_scale=(1, 64), fp16__loss_scale_window=0),
                    put(fp16__loss_scale=(1, 64), fp16__min_loss_scale=0),
                    put(fp16__enabled=False, fp16__loss_scale_window=0),
                )
            )(rng, case),
            half=2,
        ),
    ),
    "parameter-type": (
        made(put(data_types__param_dtype=("fp16", "fp32")), half=1),
        made(put(data_types__param_dtype="bf16"), half=1),
    ),
    "accumulation-type": (
        made(put(data_types__grad_accum_dtype=("fp32", "fp16")), half=1, stage=0),
        made(put(data_types__grad_accum_dtype=("fp32", "bf16")), half=1, stage=(1, 2)),
    ),
    "managed-accumulation": (
        made(
            lambda rng, case: (
                put(managed_gradient_accumulation=False)(rng, case),
                case["pp"] == 1
                and put(zero_optimization__overlap_comm=True)(rng, case),
            ),
            stage=(0, 1),
        ),
        made(
            then(
                put(managed_gradient_accumulation=False),
                lambda rng, case: case["config"]["zero_optimization"].update(
                    overlap_comm=case["config"]["zero_optimization"]["stage"] > 1
                ),
            ),
            pp=1,
        ),
    ),
    "communication-type": (
        made(put(communication_data_type=("fp8", "int8", "float"))),
        made(put(communication_data_type=("fp16", "bf16", "fp32"))),
    ),
    "removed-keys": (
        made(
            lambda rng, case: rng.choice(
                (
                    put(nebula={}),
                    put(elasticity={"enabled": False}),
                    put(amp={"enabled": False}),
                    put(sparse_gradients=False),
                    put(zero_optimization__mics_shard_size=2),
                )
            )(rng, case)
        ),
        made(put(steps_per_print=(1, 10, 1000), wall_clock_breakdown=False)),
    ),
    **ZERO,
}
#: Keys that a draw sets to anything, by path.
ANYTHING: dict[str, tuple[Any, ...]] = {
    "zero_optimization__stage": (0, 1, 2, 3),
    "zero_optimization__overlap_comm": (True, False),
    "zero_optimization__compute_grad_norm": (True, False),
    "zero_optimization__reduce_scatter": (True, False),
    "zero_optimization__zero_hpz_partition_size": (1, 2, 3, 4, 64),
    "zero_optimization__zero_quantized_gradients": (True, False),
    "zero_optimization__offload_optimizer": (CPU, {"device": "none", "ratio": 0.5}),
    "zero_optimization__offload_param": (CPU, {"device": "nvme"}, {"device": "none"}),
    "zero_optimization__legacy_stage1": (True, False),
    "zero_optimization__reduce_bucket_size": (0, 1, 10**6),
    "zero_force_ds_cpu_optimizer": (True, False),
    "zero_allow_untested_optimizer": (True, False),
    "managed_gradient_accumulation": (True, False),
    "gradient_clipping": (0.0, 1.0),
    "prescale_gradients": (True, False),
    "gradient_predivide_factor": (1.0, 2.0),
    "gradient_allreduce_op": ("mean", "sum", "max"),
    "communication_data_type": ("fp16", "bf16", "fp32", "fp8"),
    "data_types__grad_accum_dtype": ("fp16", "bf16", "fp32"),
    "data_types__param_dtype": ("fp16", "bf16", "fp32"),
    "fp16__enabled": (True, False),
    "fp16__loss_scale": (0, 1, -1),
    "fp16__loss_scale_window": (0, 1, 1000),
    "fp16__fp16_master_weights_and_grads": (True, False),
    "bf16__enabled": (True, False),
    "bf16__bf16_master_weights_and_grads": (True, False),
    "bf16__bf16_optimizer_states": (True, False),
    "train_batch_size": (1, 2, 4, 16, 48),
    "gradient_accumulation_steps": (1, 2, 4),
    "elasticity": ({},),
}


def draw(rng: random.Random) -> Case:
    """Draw a case: a legal base, and up to three keys set to anything."""
    wants: dict[str, Any] = {}
    if rng.random() < 0.2:
        wants["sp"] = rng.choice((2, 3, 4))
    case = base(rng, **wants)
    if rng.random() < 0.2:
        case["optimizer"] = rng.choice(("sgd", "rmsprop"))
    if rng.random() < 0.3:
        fits = rng.random() < 0.7
        if case["world"] // case["pp"] in range(2, 13):
            experts_of(fits, world=rng.random() < 0.5)(rng, case)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        path = rng.choice(sorted(ANYTHING))
        put(**{path: ANYTHING[path]})(rng, case)
    if rng.random() < 0.1:
        case["seq"] += 1
    if rng.random() < 0.1:
        case["world"] += rng.choice((1, 2, case["world"]))
    return case
