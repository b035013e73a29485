"""A case of the verdict schema as megatron-core's own configuration objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from megatron.core.optimizer.optimizer_config import OptimizerConfig
from megatron.core.transformer.transformer_config import (
    MLATransformerConfig,
    TransformerConfig,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
#: Keys of a case that ``TransformerConfig`` has under the same name.
_SAME = (
    "sequence_parallel",
    "num_layers_in_first_pipeline_stage",
    "num_layers_in_last_pipeline_stage",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
    "pipeline_model_parallel_layout",
    "recompute_granularity",
    "recompute_method",
    "recompute_num_layers",
    "recompute_modules",
    "distribute_saved_activations",
    "microbatch_group_size_per_vp_stage",
    "overlap_p2p_comm",
    "overlap_p2p_comm_warmup_flush",
    "moe_token_dispatcher_type",
    "moe_flex_dispatcher_backend",
    "moe_enable_deepep",
    "moe_grouped_gemm",
    "moe_shared_expert_overlap",
    "moe_expert_capacity_factor",
    "moe_pad_expert_input_to_capacity",
    "moe_router_padding_for_quantization",
    "moe_permute_fusion",
    "fp8",
    "fp8_recipe",
    "first_last_layers_bf16",
    "num_layers_at_start_in_bf16",
    "num_layers_at_end_in_bf16",
    "cpu_offloading",
    "cpu_offloading_num_layers",
    "fine_grained_activation_offloading",
    "offload_modules",
    "overlap_moe_expert_parallel_comm",
    "delay_wgrad_compute",
    "ep_overlap_early_attn_memory_release",
    "defer_embedding_wgrad_compute",
    "wgrad_deferral_limit",
    "gradient_accumulation_fusion",
    "tp_comm_overlap",
    "cp_comm_type",
    "hierarchical_context_parallel_sizes",
    "num_distributed_optimizer_instances",
    "cuda_graph_impl",
    "cuda_graph_scope",
    "mtp_num_layers",
    "variable_seq_lengths",
)
_ARCH = (
    "num_layers",
    "hidden_size",
    "num_attention_heads",
    "num_query_groups",
    "kv_channels",
    "ffn_hidden_size",
    "moe_router_topk",
    "moe_ffn_hidden_size",
    "moe_shared_expert_intermediate_size",
    "moe_layer_freq",
    "moe_router_score_function",
    "moe_router_num_groups",
    "moe_router_group_topk",
    "moe_router_enable_expert_bias",
    "moe_router_load_balancing_type",
    "moe_router_pre_softmax",
    "normalization",
)


def arguments(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of the transformer configuration."""
    arch, config = case["arch"], case["config"]
    known = set(TransformerConfig.__dataclass_fields__)
    found = {k: config[k] for k in _SAME if k in config and k in known}
    found |= {k: arch[k] for k in _ARCH if arch.get(k) is not None}
    found |= _parallel(config) | _precision(config)
    found |= {
        "num_moe_experts": arch.get("num_moe_experts"),
        "add_bias_linear": bool(arch.get("bias")),
        "gated_linear_unit": bool(arch.get("glu", True)),
        "activation_func": F.silu if arch.get("glu", True) else F.gelu,
        "bias_activation_fusion": False,
        "bias_dropout_fusion": False,
        "masked_softmax_fusion": False,
        "apply_rope_fusion": False,
        "perform_initialization": False,
        "batch_p2p_comm": not config.get("overlap_p2p_comm"),
    }
    found.setdefault("normalization", "RMSNorm")
    if arch.get("force_zero_experts"):
        found["num_moe_experts"] = 0
    if arch.get("force_moe_ffn") is not None:
        found["moe_ffn_hidden_size"] = arch["force_moe_ffn"]
    if arch.get("mla"):
        found |= {**arch["mla"], "rope_type": "rope"}
    # A list of modules or scopes may be changed by the configuration it is given to.
    return {k: list(v) if isinstance(v, list) else v for k, v in found.items()}


def _parallel(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "tensor_model_parallel_size": config.get("tp", 1),
        "pipeline_model_parallel_size": config.get("pp", 1),
        "virtual_pipeline_model_parallel_size": config.get("vpp"),
        "context_parallel_size": config.get("cp", 1),
        "expert_model_parallel_size": config.get("ep", 1),
        "expert_tensor_parallel_size": config.get("etp"),
    }


def _precision(config: Mapping[str, Any]) -> dict[str, Any]:
    name = config.get("precision", "bf16")
    noise = 0.1 if config.get("dropout") else 0.0
    return {
        "bf16": name == "bf16",
        "fp16": name == "fp16",
        "params_dtype": _DTYPES[name],
        "pipeline_dtype": _DTYPES[name],
        "fp8_param": bool(config.get("fp8_param_gather")),
        "fp4": "e2m1" if config.get("fp4") else None,
        "attention_dropout": noise,
        "hidden_dropout": noise,
    }


def transformer_config(case: Mapping[str, Any], **changed: Any) -> TransformerConfig:
    """Build the configuration, or raise what megatron-core raises."""
    kind = MLATransformerConfig if case["arch"].get("mla") else TransformerConfig
    return kind(**(arguments(case) | changed))


def optimizer_config(case: Mapping[str, Any]) -> OptimizerConfig:
    """Build the optimizer's configuration, or raise what megatron-core raises."""
    config = case["config"]
    return OptimizerConfig(
        optimizer="adam",
        lr=1e-4,
        bf16=config.get("precision", "bf16") == "bf16",
        fp16=config.get("precision") == "fp16",
        fp8_recipe=config.get("fp8_recipe") if config.get("fp8") else None,
        use_distributed_optimizer=bool(config.get("use_distributed_optimizer")),
        use_precision_aware_optimizer=bool(config.get("use_precision_aware_optimizer")),
        optimizer_cpu_offload=bool(config.get("optimizer_cpu_offload")),
        overlap_param_gather=bool(config.get("overlap_param_gather")),
    )


def chunks_of(layout: str | None, pp: int) -> int | None:
    """Return the chunks of a rank that a layout implies, None if it has one alone."""
    from megatron.core.transformer.pipeline_parallel_layer_layout import (
        PipelineParallelLayerLayout,
    )

    if layout is None:
        return None
    stages = PipelineParallelLayerLayout.get_num_stages_from_str(layout)
    return stages // pp if pp > 0 and stages % pp == 0 and stages > pp else None


def group_arguments(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``initialize_model_parallel``."""
    config = case["config"]
    vpp, layout = config.get("vpp"), config.get("pipeline_model_parallel_layout")
    if vpp is None and config.get("vpp_from_layout", True):
        try:
            vpp = chunks_of(layout, config.get("pp", 1))
        except AssertionError:  # unreadable letters: the configuration says so
            vpp = None
    return {
        "tensor_model_parallel_size": config.get("tp", 1),
        "pipeline_model_parallel_size": config.get("pp", 1),
        "virtual_pipeline_model_parallel_size": vpp,
        "context_parallel_size": config.get("cp", 1),
        "hierarchical_context_parallel_sizes": config.get(
            "hierarchical_context_parallel_sizes"
        ),
        "expert_model_parallel_size": config.get("ep", 1),
        "expert_tensor_parallel_size": config.get("etp"),
        "num_distributed_optimizer_instances": config.get(
            "num_distributed_optimizer_instances", 1
        ),
        "order": config.get("order", "tp-cp-ep-dp-pp"),
        "create_gloo_process_groups": False,
    }
