"""A case's letters as megatron-core's settings.

Letters: h hidden, a heads, g key/value groups, d head dim, f width of the feed-forward
network, s sequence, b micro-batch, tp, pp, vpp, cp, ep, etp parallel sizes, sp
sequence parallelism, world and rank; pre and post: embedding and head on this stage.
"""

from __future__ import annotations

from typing import Any

import torch
from megatron.core.transformer.transformer_config import (
    MLATransformerConfig,
    TransformerConfig,
)

Case = dict[str, Any]


def sizes_of(case: Case) -> dict[str, int]:
    """Return the parallel sizes under megatron-core's names, for its groups."""
    names = {
        "tp": "tensor_model_parallel_size",
        "pp": "pipeline_model_parallel_size",
        "cp": "context_parallel_size",
        "ep": "expert_model_parallel_size",
    }
    sizes = {name: case.get(letter) or 1 for letter, name in names.items()}
    if case.get("etp"):
        sizes["expert_tensor_parallel_size"] = case["etp"]
    if case.get("vpp"):
        sizes["virtual_pipeline_model_parallel_size"] = case["vpp"]
    return sizes


def world_of(case: Case) -> int:
    """Return the number of ranks; without one given, as few as there can be."""
    sizes = ((case.get(letter) or 1) for letter in ("tp", "pp", "cp", "ep"))
    return int(case.get("world") or torch.Size(sizes).numel())


def dtype_of(case: Case) -> torch.dtype:
    """Return the format of parameters and activations."""
    dtype = getattr(torch, case.get("dtype", "bfloat16"))
    assert isinstance(dtype, torch.dtype)
    return dtype


def is_narrow(case: Case) -> bool:
    """Whether matrix products are in eight or four bits."""
    extra = case.get("extra", {})
    return bool(extra.get("fp8") or extra.get("fp4"))


def _plain(case: Case) -> Case:
    gated, dropout = case.get("glu", True), case.get("dropout", 0.0)
    dtype, functional = dtype_of(case), torch.nn.functional
    return {
        "num_layers": case["layers"],
        "hidden_size": case["h"],
        "num_attention_heads": case["a"],
        "num_query_groups": case.get("g") or case["a"],
        "kv_channels": case.get("d"),
        "ffn_hidden_size": case.get("f", 4 * case["h"]),
        "sequence_parallel": case.get("sp", False),
        "params_dtype": dtype,
        "pipeline_dtype": dtype,
        "bf16": dtype == torch.bfloat16,
        "fp16": dtype == torch.float16,
        "hidden_dropout": dropout,
        "attention_dropout": dropout,
        "normalization": case.get("norm", "RMSNorm"),
        "gated_linear_unit": gated,
        "activation_func": functional.silu if gated else functional.gelu,
        "add_bias_linear": case.get("bias", False),
        "add_qkv_bias": case.get("qkv_bias", False),
        "bias_activation_fusion": case.get("act_fusion", True),
        "bias_dropout_fusion": case.get("bda_fusion", False),
        "masked_softmax_fusion": case.get("softmax_fusion", False),
        "attention_softmax_in_fp32": case.get("softmax32", False),
        "apply_query_key_layer_scaling": False,
        "apply_rope_fusion": False,
        "gradient_accumulation_fusion": False,
        "perform_initialization": False,
        "cross_entropy_loss_fusion": case.get("ce_fusion", False),
        "persist_layer_norm": False,
    }


def _recompute(case: Case) -> Case:
    choice = case.get("recompute")
    if not choice:
        return {}
    if choice == "full":
        return {
            "recompute_granularity": "full",
            "recompute_method": case.get("rc_method", "uniform"),
            "recompute_num_layers": case.get("rc_layers", 1),
            "distribute_saved_activations": case.get("rc_dist", False),
        }
    modules = choice if isinstance(choice, list) else [choice]
    return {"recompute_granularity": "selective", "recompute_modules": modules}


def _experts(case: Case) -> Case:
    if not case.get("experts"):
        return {}
    return {
        "num_moe_experts": case["experts"],
        "moe_router_topk": case.get("topk", 2),
        "moe_ffn_hidden_size": case.get("moe_f", case.get("f")),
        "moe_token_dispatcher_type": case.get("dispatcher", "alltoall"),
        "moe_grouped_gemm": case.get("grouped", False),
        "moe_router_load_balancing_type": case.get("lb", "none"),
        "moe_aux_loss_coeff": case.get("aux", 0.0),
        "moe_shared_expert_intermediate_size": case.get("shared_f"),
        "moe_router_dtype": case.get("router_dtype"),
        "moe_expert_capacity_factor": case.get("cap"),
        "moe_pad_expert_input_to_capacity": bool(case.get("cap")),
        "moe_permute_fusion": case.get("permute_fusion", False),
        "moe_layer_freq": case.get("moe_freq", 1),
        "moe_router_score_function": case.get("score", "softmax"),
        "moe_router_pre_softmax": case.get("pre_softmax", False),
    }


def config_of(case: Case) -> TransformerConfig:
    """Return the framework's configuration of a case."""
    chosen = _plain(case) | _recompute(case) | _experts(case) | sizes_of(case)
    # The layers' own specifications say it as well, but for one of mixed kinds.
    chosen["qk_layernorm"] = case.get("qk_ln", False)
    chosen |= case.get("extra", {})
    if case.get("mtp"):
        chosen["mtp_num_layers"] = case["mtp"]
    if not case.get("mla"):
        return TransformerConfig(**chosen)
    del chosen["num_query_groups"]
    latent = {"multi_latent_attention": True, "rope_type": "rope"}
    return MLATransformerConfig(**chosen, **latent, **case["mla"])
