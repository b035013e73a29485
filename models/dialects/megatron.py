"""What Megatron can be told beside the axes of the layout, as of core 0.16.

Names are those of ``TransformerConfig`` and its neighbours. ``auto`` stands for
the value the planner's launch files write because it is the one that fits.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from .option import Option
from .option import choice as _choice
from .option import flags as _flags
from .option import number as _number

if TYPE_CHECKING:
    from collections.abc import Mapping


def _set(name: str, *labels: str) -> Option:
    return Option(name=name, kind="set", labels=labels)


_PIPELINE = (
    _number("num_layers_in_first_pipeline_stage"),
    _number("num_layers_in_last_pipeline_stage"),
    *_flags(
        "account_for_embedding_in_pipeline_split",
        "account_for_loss_in_pipeline_split",
        "degree_below_one",
        "vpp_given",
        "overlap_p2p_comm_warmup_flush",
        "defer_embedding_wgrad_compute",
        "variable_seq_lengths",
    ),
    *_flags("vpp_from_layout", "pad_vocab", on=True),
    _number("microbatch_group_size_per_vp_stage"),
    _choice("overlap_p2p_comm", "auto", "off", "on"),
    _number("wgrad_deferral_limit", 0),
)
_MEMORY = (
    _choice("recompute_granularity", "auto", "none", "selective", "full"),
    _choice("recompute_method", "auto", "none", "uniform", "block"),
    _choice("recompute_count", "auto", "none", "given"),
    _number("recompute_num_layers", 1),
    *_flags(
        "unknown_recompute_module", "distribute_saved_activations", "cpu_offloading"
    ),
    _number("cpu_offloading_num_layers", 0),
    *_flags("fine_grained_activation_offloading"),
    _set(
        "offload_modules",
        "core_attn",
        "attn_proj",
        "expert_fc1",
        "moe_act",
        "attn_norm",
        "mlp_norm",
        "qkv_linear",
    ),
)
_EXPERTS = (
    _choice(
        "moe_token_dispatcher_type", "allgather", "alltoall", "flex", default="alltoall"
    ),
    _choice("moe_flex_dispatcher_backend", "deepep", "hybridep"),
    *_flags(
        "moe_enable_deepep",
        "moe_shared_expert_overlap",
        "moe_pad_expert_input_to_capacity",
        "moe_router_padding_for_quantization",
        "overlap_moe_expert_parallel_comm",
        "delay_wgrad_compute",
        "ep_overlap_early_attn_memory_release",
        "moe_pad_experts_for_cuda_graph_inference",
    ),
    *_flags("moe_grouped_gemm", "moe_permute_fusion", on=True),
    _choice("moe_expert_capacity_factor", "none", "given", "negative"),
)
_PRECISION = (
    _choice("precision", "bf16", "fp16", "fp32"),
    _choice("fp8", "none", "e4m3", "hybrid"),
    _choice("fp8_recipe", "delayed", "tensorwise", "blockwise", "mxfp8", "custom"),
    *_flags("fp4", "fp8_param_gather", "first_last_layers_bf16", "dropout"),
    _number("num_layers_at_start_in_bf16", 1),
    _number("num_layers_at_end_in_bf16", 1),
)
_SHARDING = (
    _number("num_distributed_optimizer_instances", 1),
    *_flags(
        "overlap_grad_reduce",
        "overlap_param_gather",
        "overlap_param_gather_with_optimizer_step",
        "use_precision_aware_optimizer",
        "optimizer_cpu_offload",
        "use_torch_fsdp2",
        "use_megatron_fsdp",
        "gradient_accumulation_fusion",
        "tp_comm_overlap",
    ),
    _choice("cp_comm_type", "auto", "p2p", "a2a", "allgather", "a2a+p2p"),
    _choice("cuda_device_max_connections", "auto", "1", "more"),
)
_GRAPHS = (
    _choice("cuda_graph_impl", "none", "local", "transformer_engine"),
    _set(
        "cuda_graph_scope",
        "attn",
        "mlp",
        "moe",
        "moe_router",
        "moe_preprocess",
        "mamba",
        "full_iteration",
    ),
)
#: Options that only Primus has, on top of Megatron's.
_PRIMUS = (
    _number("turbo_sync_free_moe_stage", 0),
    *_flags("use_turbo_deepep"),
    *_flags("expandable_segments", on=True),
)

OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        option.name: option
        for option in (
            *_PIPELINE,
            *_MEMORY,
            *_EXPERTS,
            *_PRECISION,
            *_SHARDING,
            *_GRAPHS,
            *_PRIMUS,
        )
    }
)
