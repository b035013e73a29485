"""Configurations of Accelerate: two families a rule, and draws over all fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from other_accelerate_bases import (
    base,
    below_one,
    made,
    mesh,
    one,
    plugin,
    precision,
    world_of,
)

if TYPE_CHECKING:
    import random

    from other_accelerate_bases import Case, Maker

_STRATEGIES = (
    "FULL_SHARD",
    "SHARD_GRAD_OP",
    "NO_SHARD",
    "HYBRID_SHARD",
    "HYBRID_SHARD_ZERO2",
)
FAMILIES: dict[str, tuple[Maker, Maker]] = {
    "world-dense": (made(world_of, launch=("fsdp2", "ddp")), made(launch="fsdp2")),
    "sizes": (
        made(below_one, launch=("fsdp2", "ddp")),
        made(launch=("fsdp2", "ddp"), dp_replicate_size=1),
    ),
    "cp-ulysses": (
        made(launch="fsdp2", sp_size=(2, 4), cp_size=(2, 4)),
        made(launch=("fsdp2", "ddp"), sp_size=(2, 4), cp_size=1),
    ),
    "replicas-alone": (
        made(
            launch="ddp",
            dp_replicate_size=tuple(range(2, 17)),
            dp_shard_size=1,
            tp_size=(2, 4),
        ),
        made(
            launch=("ddp", "fsdp2"),
            dp_replicate_size=tuple(range(2, 17)),
            tp_size=(2, 4),
        ),
    ),
    "backends": (
        made(
            one(mesh(cp_backend=("megatron", "ring")), mesh(sp_backend="torch")),
            launch=("fsdp2", "ddp"),
        ),
        made(mesh(cp_backend="torch", sp_backend="deepspeed"), launch=("fsdp2", "ddp")),
    ),
    "cp-strategy": (
        made(mesh(cp_comm_strategy=("p2p", "ring", "a2a")), launch="fsdp2"),
        made(mesh(cp_comm_strategy=("allgather", "alltoall")), launch="fsdp2"),
    ),
    "ulysses-length": (
        made(mesh(sp_seq_length_is_variable=False), launch=("fsdp2", "ddp")),
        made(
            one(
                mesh(sp_seq_length_is_variable=False, sp_seq_length=(2048, 8192)),
                mesh(sp_seq_length_is_variable=True),
            ),
            launch=("fsdp2", "ddp"),
        ),
    ),
    "ulysses-attention": (
        made(
            mesh(sp_attn_implementation=("eager", "flex_attention", "hub/attn")),
            launch=("fsdp2", "ddp"),
        ),
        made(
            mesh(
                sp_attn_implementation=(
                    "sdpa",
                    "flash_attention_2",
                    "flash_attention_3",
                    "kernels-community/flash-attn2",
                )
            ),
            launch=("fsdp2", "ddp"),
        ),
    ),
    "cp-fsdp2": (
        made(launch="ddp", cp_size=(2, 4)),
        made(launch="fsdp2", cp_size=(2, 4)),
    ),
    "fsdp2-shards": (
        made(
            launch="fsdp2",
            dp_replicate_size=1,
            dp_shard_size=1,
            cp_size=1,
            tp_size=tuple(range(2, 65)),
        ),
        made(
            launch="fsdp2",
            dp_shard_size=(1, 2, 3, 5),
            dp_replicate_size=1,
            cp_size=(2, 4, 8),
        ),
    ),
    "fsdp1-alone": (
        made(
            lambda rng, case: case.update(parallelism={"dp_shard_size": case["world"]}),
            launch="fsdp1",
        ),
        made(one(mesh(), mesh(dp_shard_size=1)), launch="fsdp1"),
    ),
    "precision": (
        made(precision("fp32", "fp9", "int8", "half")),
        made(precision("no", "fp16", "bf16", None)),
    ),
    "fsdp-reshard": (
        made(
            lambda rng, case: plugin(
                **rng.choice(
                    (
                        {"sharding_strategy": _STRATEGIES},
                        {"reshard_after_forward": _STRATEGIES},
                    )
                    if case["fsdp"]["fsdp_version"] == 2
                    else ({"reshard_after_forward": (True, False)},)
                )
            )(rng, case),
            launch=("fsdp1", "fsdp2"),
        ),
        made(
            lambda rng, case: plugin(
                **rng.choice(
                    (
                        {"reshard_after_forward": (True, False, "true")},
                        {
                            "reshard_after_forward": True,
                            "sharding_strategy": _STRATEGIES,
                        },
                    )
                    if case["fsdp"]["fsdp_version"] == 2
                    else ({"reshard_after_forward": _STRATEGIES},)
                )
            )(rng, case),
            launch=("fsdp1", "fsdp2"),
        ),
    ),
    "fsdp-strategy": (
        made(plugin(sharding_strategy=("ZERO", "FULL", "SHARD")), launch="fsdp1"),
        made(plugin(sharding_strategy=_STRATEGIES), launch="fsdp1"),
    ),
    "fsdp-names": (
        made(
            one(
                plugin(state_dict_type=("LOCAL", "DCP")),
                plugin(auto_wrap_policy=("LAYERS", "ALL")),
                plugin(backward_prefetch=("PRE", "BOTH")),
                plugin(mixed_precision_policy=("fp9", "int8")),
            ),
            launch=("fsdp1", "fsdp2"),
        ),
        made(
            one(
                plugin(state_dict_type=("FULL_STATE_DICT", "sharded_state_dict")),
                plugin(auto_wrap_policy=("TRANSFORMER_BASED_WRAP", "NO_WRAP")),
                plugin(auto_wrap_policy="SIZE_BASED_WRAP", min_num_params=(1, 10**6)),
                plugin(backward_prefetch=("BACKWARD_PRE", "BACKWARD_POST")),
                plugin(backward_prefetch="NO_PREFETCH"),
                plugin(mixed_precision_policy=("fp8", "fp16", "bf16", "fp32")),
            ),
            launch=("fsdp1", "fsdp2"),
        ),
    ),
    "fsdp2-state-dict": (
        made(plugin(state_dict_type="LOCAL_STATE_DICT"), launch="fsdp2"),
        made(
            one(
                plugin(state_dict_type=("FULL_STATE_DICT", "SHARDED_STATE_DICT")),
                plugin(fsdp_version=1, state_dict_type="LOCAL_STATE_DICT"),
            ),
            launch="fsdp1",
        ),
    ),
    "fsdp2-forward-prefetch": (
        made(plugin(forward_prefetch=(True, False)), launch="fsdp2"),
        made(plugin(forward_prefetch=(True, False)), launch="fsdp1"),
    ),
    "fsdp-checkpoint-offload": (
        made(
            lambda rng, case: plugin(
                activation_checkpointing_offload=True,
                activation_checkpointing=case["fsdp"]["fsdp_version"] == 1,
            )(rng, case),
            launch=("fsdp1", "fsdp2"),
        ),
        made(
            one(
                plugin(
                    activation_checkpointing_offload=True,
                    activation_checkpointing=True,
                ),
                plugin(activation_checkpointing=(True, False)),
            ),
            launch="fsdp2",
        ),
    ),
    "fsdp-offload": (
        made(
            lambda rng, case: plugin(
                cpu_offload=f"fsdp{3 - case['fsdp']['fsdp_version']}"
            )(rng, case),
            launch=("fsdp1", "fsdp2"),
        ),
        made(
            lambda rng, case: plugin(
                cpu_offload=(True, False, f"fsdp{case['fsdp']['fsdp_version']}")
            )(rng, case),
            launch=("fsdp1", "fsdp2"),
        ),
    ),
}
#: Fields that a draw sets to anything.
MESH: dict[str, tuple[Any, ...]] = {
    "dp_replicate_size": (1, 2, 4),
    "dp_shard_size": (1, 2, 4),
    "tp_size": (1, 2),
    "cp_size": (1, 2, 4),
    "cp_backend": ("torch", "ring"),
    "cp_comm_strategy": ("allgather", "alltoall", "p2p"),
    "sp_attn_implementation": ("sdpa", "eager"),
    "sp_seq_length_is_variable": (True, False),
    "sp_seq_length": (None, 4096),
}
PLUGIN: dict[str, tuple[Any, ...]] = {
    "fsdp_version": (1, 2),
    "reshard_after_forward": (True, False, "FULL_SHARD", "NONE"),
    "sharding_strategy": (*_STRATEGIES, "ZERO"),
    "state_dict_type": ("FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT"),
    "auto_wrap_policy": ("TRANSFORMER_BASED_WRAP", "NO_WRAP", "ALL"),
    "backward_prefetch": ("BACKWARD_PRE", "NO_PREFETCH", "BOTH"),
    "forward_prefetch": (True, False, None),
    "activation_checkpointing": (True, False),
    "activation_checkpointing_offload": (True, False),
    "cpu_offload": (True, False, "fsdp1", "fsdp2"),
    "mixed_precision_policy": ("fp16", "bf16", "fp9"),
}


def draw(rng: random.Random) -> Case:
    """Draw a case: a legal base, and up to three fields set to anything."""
    case = base(rng)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        part = rng.choice(("mesh", "fsdp", "fsdp", "world"))
        if part == "mesh":
            name = rng.choice(sorted(MESH))
            mesh(**{name: MESH[name]})(rng, case)
        elif part == "fsdp" and case["fsdp"] is not None:
            name = rng.choice(sorted(PLUGIN))
            plugin(**{name: PLUGIN[name]})(rng, case)
        elif rng.random() < 0.3:
            world_of(rng, case)
    return case
