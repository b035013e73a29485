"""Boundaries of rules of overlap, sharding, precision and graphs.

For each rule: the base, the changes of both sides, those of the just legal side and
those of the side that is illegal by this rule alone.
"""

from typing import Any

from megatron_cases import DENSE, SPARSE, Case

Changes = dict[str, Any]
Entry = tuple[Case, Changes, Changes, Changes]

_NO_SHARED = {"moe_shared_expert_intermediate_size": None}
_A2A = {"vpp": 2, "overlap_p2p_comm": True, "overlap_moe_expert_parallel_comm": True}
_FULL = {"recompute_granularity": "full", "recompute_method": "uniform"}
_UNIFORM = {**_FULL, "recompute_num_layers": 1}
_FP8 = {"fp8": "e4m3", "fp8_recipe": "tensorwise"}
_FSDP2 = {"pp": 1, "use_torch_fsdp2": True, "use_distributed_optimizer": False}
_ENGINE = {"cuda_graph_impl": "transformer_engine"}
_DROP = {"moe_expert_capacity_factor": 1.0}
_PADDED = {**_DROP, "moe_pad_expert_input_to_capacity": True}
_GATHER = {"overlap_param_gather": True, "overlap_grad_reduce": True}
_DEFER = {"defer_embedding_wgrad_compute": True, "gradient_accumulation_fusion": True}
_HOST = {"cpu_offloading": True, "cpu_offloading_num_layers": 23}


def _selective(*modules: str) -> Changes:
    return {"recompute_granularity": "selective", "recompute_modules": list(modules)}


def _scope(*names: str) -> Changes:
    return {"cuda_graph_scope": list(names)}


_DISPATCHER = "moe_token_dispatcher_type"
OVERLAP: dict[str, Entry] = {
    "ep-a2a-overlap": (SPARSE, _A2A, {"ep": 2}, {"ep": 1}),
    "ep-a2a-overlap-vpp": (
        SPARSE,
        {"overlap_moe_expert_parallel_comm": True},
        {"pp": 1},
        {"pp": 2},
    ),
    "ep-a2a-overlap-dispatcher": (
        SPARSE,
        _A2A,
        {_DISPATCHER: "flex"},
        {_DISPATCHER: "allgather"},
    ),
    "ep-a2a-overlap-recompute": (SPARSE, _A2A, _selective("moe"), _UNIFORM),
    "ep-a2a-overlap-precision": (
        SPARSE,
        _A2A,
        {"precision": "fp16"},
        {"precision": "fp32"},
    ),
    "ep-a2a-overlap-shared": (
        SPARSE,
        _A2A,
        {},
        {"moe_shared_expert_overlap": True},
    ),
    "ep-a2a-overlap-mtp": (
        SPARSE,
        _A2A,
        {"mtp_num_layers": 1},
        {"mtp_num_layers": 2},
    ),
    "ep-a2a-overlap-graph": (
        SPARSE,
        {**_A2A, **_ENGINE, "moe_layer_freq": 2},
        _scope("attn"),
        _scope("mlp"),
    ),
    "delay-wgrad": (
        SPARSE,
        {"delay_wgrad_compute": True},
        _A2A,
        {},
    ),
    "early-release": (
        SPARSE,
        {"ep_overlap_early_attn_memory_release": True},
        _A2A,
        {},
    ),
    "defer-embedding": (DENSE, _DEFER, {"pp": 2}, {"pp": 1}),
    "defer-embedding-fusion": (
        DENSE,
        _DEFER,
        {},
        {"gradient_accumulation_fusion": False},
    ),
    "defer-embedding-limit": (
        DENSE,
        _DEFER,
        {"wgrad_deferral_limit": 0},
        {"wgrad_deferral_limit": -1},
    ),
    "tp-overlap": (
        DENSE,
        {"tp_comm_overlap": True},
        {},
        {"sequence_parallel": False},
    ),
}
SHARDING: dict[str, Entry] = {
    "fsdp2": (DENSE, _FSDP2, {"pp": 1}, {"pp": 2}),
    "fsdp2-ep": (SPARSE, _FSDP2, {"ep": 1}, {"ep": 2}),
    "fsdp2-optimizer": (
        DENSE,
        _FSDP2,
        {},
        {"use_distributed_optimizer": True},
    ),
    "fsdp2-fusion": (DENSE, _FSDP2, {}, {"gradient_accumulation_fusion": True}),
    "fsdp2-tied": (DENSE, _FSDP2, {}, {"tied_embeddings": True}),
    "fsdp2-fp16": (DENSE, _FSDP2, {"precision": "fp32"}, {"precision": "fp16"}),
    "param-gather": (
        DENSE,
        _GATHER,
        {"use_distributed_optimizer": True},
        {"use_distributed_optimizer": False},
    ),
    "param-gather-reduce": (DENSE, _GATHER, {}, {"overlap_grad_reduce": False}),
    "param-gather-step": (
        DENSE,
        {**_GATHER, "overlap_param_gather_with_optimizer_step": True},
        {"vpp": 2, "overlap_p2p_comm": True},
        {},
    ),
    "precision-aware": (
        DENSE,
        {"use_precision_aware_optimizer": True},
        {},
        {"use_distributed_optimizer": False},
    ),
    "optimizer-offload": (
        DENSE,
        {"optimizer_cpu_offload": True},
        {"use_precision_aware_optimizer": True},
        {},
    ),
    "optimizer-offload-fp8": (
        DENSE,
        {
            "fp8": "hybrid",
            "fp8_param_gather": True,
            "optimizer_cpu_offload": True,
            "use_precision_aware_optimizer": True,
        },
        {"fp8_recipe": "delayed"},
        {"fp8_recipe": "tensorwise"},
    ),
    "max-connections": (
        DENSE,
        {},
        {"cuda_device_max_connections": "1"},
        {"cuda_device_max_connections": "more"},
    ),
    "megatron-fsdp": (
        DENSE,
        {"use_megatron_fsdp": True},
        {"cuda_device_max_connections": "more"},
        {"cuda_device_max_connections": "1"},
    ),
}
PRECISION: dict[str, Entry] = {
    "fp8-fp4": (DENSE, {"fp4": True}, {}, _FP8),
    "fp8-param": (DENSE, {"fp8_param_gather": True}, _FP8, {}),
    "fp8-param-sharding": (
        DENSE,
        {**_FP8, "use_distributed_optimizer": False},
        {},
        {"fp8_param_gather": True},
    ),
    "fp8-ends": (
        DENSE,
        {**_FP8, "first_last_layers_bf16": True},
        {"num_layers_at_start_in_bf16": 12},
        {"num_layers_at_start_in_bf16": 13},
    ),
    "fp8-ends-delayed": (
        DENSE,
        {"fp8": "hybrid", "first_last_layers_bf16": True},
        {"fp8_recipe": "blockwise"},
        {"fp8_recipe": "delayed"},
    ),
    "fp8-custom": (
        DENSE,
        {"fp8": "hybrid"},
        {"fp8_recipe": "mxfp8"},
        {"fp8_recipe": "custom"},
    ),
    "fp8-sides": (DENSE, _FP8, {"hidden_size": 1040}, {"hidden_size": 1032}),
}
GRAPHS: dict[str, Entry] = {
    "graph-names": (
        DENSE,
        {},
        {"cuda_graph_impl": "local"},
        {"cuda_graph_impl": "other"},
    ),
    "graph-offload": (
        DENSE,
        {"pp": 1, **_ENGINE},
        {"cpu_offloading": False},
        _HOST,
    ),
    "graph-iteration": (
        DENSE,
        _scope("full_iteration"),
        {"cuda_graph_impl": "local"},
        _ENGINE,
    ),
    "graph-moe-router": (
        SPARSE,
        {**_PADDED, **_ENGINE},
        _scope("moe"),
        _scope("moe", "moe_router"),
    ),
    "graph-preprocess": (
        SPARSE,
        _ENGINE,
        _scope("moe_router", "moe_preprocess"),
        _scope("moe_preprocess"),
    ),
    "graph-moe": (DENSE, _ENGINE, _scope("mlp"), _scope("moe_router")),
    "graph-mlp": (
        SPARSE,
        {**_ENGINE, **_scope("mlp")},
        {"moe_layer_freq": 2},
        {"moe_layer_freq": 1},
    ),
    "graph-padding": (SPARSE, {**_ENGINE, **_scope("moe")}, _PADDED, _DROP),
    "graph-sync": (
        SPARSE,
        {**_ENGINE, **_DROP},
        _scope("moe_router"),
        _scope("moe_router", "moe_preprocess"),
    ),
    "graph-full-recompute": (
        DENSE,
        {**_UNIFORM, "cuda_graph_impl": "local"},
        _scope("full_iteration"),
        _scope("attn"),
    ),
    "graph-recompute-moe": (
        SPARSE,
        {**_ENGINE, **_scope("moe_router")},
        _selective("layernorm"),
        _selective("moe"),
    ),
    "graph-dropout": (
        DENSE,
        {**_ENGINE, **_scope("attn"), "dropout": True},
        _selective("mlp"),
        _selective("core_attn"),
    ),
    "graph-local-ep": (
        SPARSE,
        {"cuda_graph_impl": "local"},
        {"moe_pad_experts_for_cuda_graph_inference": True},
        {},
    ),
}


OPTIONS: dict[str, Entry] = {**OVERLAP, **SHARDING, **PRECISION, **GRAPHS}
