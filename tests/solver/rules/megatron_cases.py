"""Small legal configurations of Megatron, and how to change them."""

import copy
from typing import Any

Case = dict[str, Any]

DENSE: Case = {
    "arch": {
        "num_layers": 24,
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "num_query_groups": 8,
        "kv_channels": 64,
        "ffn_hidden_size": 4096,
        "vocab_size": 50304,
    },
    "config": {
        "tp": 2,
        "pp": 2,
        "cp": 2,
        "sequence_parallel": True,
        "use_distributed_optimizer": True,
    },
    "world": 64,
    "global_batch": 64,
    "micro_batch": 1,
    "seq": 4096,
}
SPARSE: Case = {
    **DENSE,
    "arch": {
        **DENSE["arch"],
        "num_moe_experts": 8,
        "moe_router_topk": 2,
        "moe_ffn_hidden_size": 512,
        "moe_shared_expert_intermediate_size": 512,
    },
    "config": {
        **DENSE["config"],
        "ep": 4,
        "etp": 1,
        "moe_token_dispatcher_type": "alltoall",
    },
}


def change(case: Case, **changes: Any) -> Case:
    """Return a case with other entries: of the case, its arch or its config."""
    result = copy.deepcopy(case)
    for name, value in changes.items():
        if name in ("world", "global_batch", "micro_batch", "seq"):
            result[name] = value
        elif name in ARCH:
            result["arch"][name] = value
        else:
            result["config"][name] = value
    return result


ARCH = {
    *SPARSE["arch"],
    "bias",
    "force_zero_experts",
    "mla",
    "moe_layer_freq",
    "moe_router_enable_expert_bias",
    "moe_router_group_topk",
    "moe_router_load_balancing_type",
    "moe_router_num_groups",
    "moe_router_pre_softmax",
    "moe_router_score_function",
    "softmax_type",
    "tied_embeddings",
    "window_size",
}
