"""Boundaries of rules of experts, recomputation and offload.

For each rule: the base, the changes of both sides, those of the just legal side and
those of the side that is illegal by this rule alone.
"""

from typing import Any

from megatron_cases import DENSE, SPARSE, Case

Changes = dict[str, Any]
Entry = tuple[Case, Changes, Changes, Changes]

_NO_SHARED = {"moe_shared_expert_intermediate_size": None}
_FULL = {"recompute_granularity": "full", "recompute_method": "uniform"}
_UNIFORM = {**_FULL, "recompute_num_layers": 1}
_FP8 = {"fp8": "e4m3", "fp8_recipe": "tensorwise"}
_DROP = {"moe_expert_capacity_factor": 1.0}
_PADDED = {**_DROP, "moe_pad_expert_input_to_capacity": True}
_FINE = {"fine_grained_activation_offloading": True}
_HOST = {"cpu_offloading": True, "cpu_offloading_num_layers": 23}


def _selective(*modules: str) -> Changes:
    return {"recompute_granularity": "selective", "recompute_modules": list(modules)}


def _scope(*names: str) -> Changes:
    return {"cuda_graph_scope": list(names)}


_DISPATCHER = "moe_token_dispatcher_type"
EXPERTS: dict[str, Entry] = {
    "expert-width": (DENSE, {}, {}, {"moe_ffn_hidden_size": 512}),
    "expert-pattern": (
        SPARSE,
        {},
        {"moe_layer_freq": [0] + [1] * 23},
        {"moe_layer_freq": [0] + [1] * 22},
    ),
    "shared-width": (SPARSE, {}, {}, {"moe_shared_expert_intermediate_size": 0}),
    "router-groups": (
        SPARSE,
        {"moe_router_group_topk": 2},
        {"moe_router_num_groups": 4},
        {"moe_router_num_groups": 3},
    ),
    "router-top1": (
        SPARSE,
        {"moe_router_topk": 1},
        {"moe_router_pre_softmax": True},
        {"moe_router_pre_softmax": False},
    ),
    "router-bias": (
        SPARSE,
        {"moe_router_enable_expert_bias": True},
        {"moe_router_score_function": "sigmoid"},
        {"moe_router_score_function": "softmax"},
    ),
    "capacity": (
        SPARSE,
        _DROP,
        {"moe_router_load_balancing_type": "seq_aux_loss"},
        {"moe_router_load_balancing_type": "sinkhorn"},
    ),
    "capacity-padding": (
        SPARSE,
        {"moe_pad_expert_input_to_capacity": True},
        _DROP,
        {"moe_expert_capacity_factor": -1.0},
    ),
    "mla-gqa": (
        DENSE,
        {"mla": {"kv_lora_rank": 512}},
        {"num_query_groups": None},
        {"num_query_groups": 8},
    ),
    "dispatcher": (SPARSE, {}, {_DISPATCHER: "flex"}, {_DISPATCHER: "ring"}),
    "deepep": (
        SPARSE,
        {"moe_enable_deepep": True},
        {_DISPATCHER: "flex"},
        {_DISPATCHER: "alltoall"},
    ),
    "deepep-padding": (
        SPARSE,
        {**_PADDED, _DISPATCHER: "flex"},
        {"moe_flex_dispatcher_backend": "hybridep"},
        {"moe_flex_dispatcher_backend": "deepep"},
    ),
    "deepep-group": (SPARSE, {_DISPATCHER: "flex"}, {"ep": 2}, {"ep": 1}),
    "flex-backend": (
        SPARSE,
        {_DISPATCHER: "flex"},
        {"moe_flex_dispatcher_backend": "hybridep"},
        {"moe_flex_dispatcher_backend": "other"},
    ),
    "shared-overlap": (
        SPARSE,
        {"moe_shared_expert_overlap": True},
        {_DISPATCHER: "alltoall"},
        {_DISPATCHER: "flex"},
    ),
    "lengths-allgather": (
        DENSE,
        {"variable_seq_lengths": True},
        {_DISPATCHER: "alltoall"},
        {_DISPATCHER: "allgather"},
    ),
    "router-padding": (
        SPARSE,
        {"moe_router_padding_for_quantization": True},
        _FP8,
        {"fp8": None},
    ),
    "router-padding-dispatcher": (
        SPARSE,
        {"moe_router_padding_for_quantization": True, **_FP8},
        {_DISPATCHER: "alltoall"},
        {_DISPATCHER: "allgather"},
    ),
    "etp-bias": (SPARSE, {"bias": True, **_NO_SHARED}, {"etp": 1}, {"etp": 2}),
    "shared-bias": (
        SPARSE,
        {"bias": True},
        _NO_SHARED,
        {"moe_shared_expert_intermediate_size": 512},
    ),
    "bias-alone": (SPARSE, {"bias": True, **_NO_SHARED}, {"ep": 2}, {"ep": 1}),
}
MEMORY: dict[str, Entry] = {
    "recompute-granularity": (
        DENSE,
        {},
        {"recompute_granularity": "selective"},
        {"recompute_granularity": "some"},
    ),
    "recompute-method": (
        DENSE,
        {"recompute_granularity": "full", "recompute_num_layers": 1},
        {"recompute_method": "block"},
        {"recompute_method": "random"},
    ),
    "recompute-full": (DENSE, _FULL, {"recompute_num_layers": 1}, {}),
    "recompute-count": (DENSE, _selective("mlp"), {}, {"recompute_num_layers": 1}),
    "recompute-selective-method": (
        DENSE,
        _selective("mlp"),
        {},
        {"recompute_method": "uniform"},
    ),
    "recompute-selective": (
        SPARSE,
        _selective("moe_act"),
        {"moe_grouped_gemm": True},
        {"moe_grouped_gemm": False},
    ),
    "recompute-shared": (
        SPARSE,
        {"moe_shared_expert_overlap": True},
        _selective("moe"),
        _selective("shared_experts"),
    ),
    "recompute-fp8": (
        DENSE,
        {"fp8": "hybrid", "fp8_recipe": "delayed"},
        _selective("mlp"),
        _selective("layernorm"),
    ),
    "distribute-saved": (
        DENSE,
        {
            **_UNIFORM,
            "distribute_saved_activations": True,
            "sequence_parallel": False,
        },
        {"tp": 2},
        {"tp": 1},
    ),
    "distribute-saved-sp": (
        DENSE,
        {**_UNIFORM, "distribute_saved_activations": True},
        {"sequence_parallel": False},
        {"sequence_parallel": True},
    ),
    "recompute-mtp": (
        DENSE,
        {**_FULL, "mtp_num_layers": 1},
        {"recompute_num_layers": 1},
        {"recompute_num_layers": 2},
    ),
    "recompute-uniform": (
        DENSE,
        {**_FULL, "pp": 2},
        {"recompute_num_layers": 4},
        {"recompute_num_layers": 5},
    ),
    "recompute-bias": (
        DENSE,
        {"recompute_granularity": "selective", "recompute_modules": ["mlp"]},
        {"bias": False},
        {"bias": True},
    ),
    "offload-layers": (
        DENSE,
        {"pp": 1, "cpu_offloading": True},
        {"cpu_offloading_num_layers": 23},
        {"cpu_offloading_num_layers": 24},
    ),
    "offload": (DENSE, _HOST, {"pp": 1}, {"pp": 2}),
    "offload-recompute": (DENSE, {**_HOST, "pp": 1}, {}, _selective("mlp")),
    "offload-fine": (
        DENSE,
        {**_FINE, "pp": 1, "offload_modules": ["core_attn"]},
        {"cpu_offloading": False},
        _HOST,
    ),
    "offload-modules": (
        DENSE,
        _FINE,
        {"offload_modules": ["mlp_norm"]},
        {"offload_modules": []},
    ),
    "offload-attn-proj": (
        DENSE,
        _FINE,
        {"offload_modules": ["attn_proj", "core_attn"]},
        {"offload_modules": ["attn_proj"]},
    ),
}

EXPERT: dict[str, Entry] = {**EXPERTS, **MEMORY}
