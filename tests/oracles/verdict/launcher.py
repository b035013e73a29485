"""What only the launcher checks, restated: its file is not in the wheel.

Every line restates one check of ``validate_args`` in Megatron-LM core_v0.16.1
megatron/training/arguments.py. Nothing here runs the framework's own code.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def refusals(case: Mapping[str, Any]) -> list[str]:
    """Return the checks of the launcher that a case fails, in plain words."""
    arch, config = case["arch"], case["config"]
    found: list[str] = []
    for part in (_sizes, _pipeline, _context, _recompute, _sharding, _experts):
        found += part(case, arch, config)
    return found


def _sizes(
    case: Mapping[str, Any], arch: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[str]:
    dense = config.get("tp", 1) * config.get("pp", 1) * config.get("cp", 1)
    if dense < 1 or case["world"] % dense:
        yield "world size divisible by tp * pp * cp"
    if case["micro_batch"] <= 0:
        yield "micro batch size positive"
    if case["global_batch"] <= 0:
        yield "global batch size positive"
    heads = arch["num_attention_heads"]
    if arch.get("kv_channels") is None and arch["hidden_size"] % heads:
        yield "hidden size divisible by attention heads"
    mixed = arch.get("mla") and arch.get("num_query_groups") is not None
    if mixed:
        yield "multi-latent attention excludes group-query attention"
    if config.get("tp_comm_overlap") and not config.get("sequence_parallel"):
        yield "tp_comm_overlap needs sequence parallelism"


def _pipeline(
    case: Mapping[str, Any], arch: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[str]:
    del case
    pp, vpp = config.get("pp", 1), config.get("vpp")
    layout = config.get("pipeline_model_parallel_layout")
    own = config.get("vpp_from_layout", True)  # vpp is the one taken from the layout
    if layout is not None and vpp is not None and not own:
        yield "layout and number of virtual stages both given"
    derived = vpp
    if layout is not None:
        yield from _layout(layout, pp)
        stages = _unrolled(layout).count("|") + 1
        if derived is None and own and pp > 0 and stages % pp == 0:
            derived = stages // pp
    # The launcher takes one virtual stage for none.
    if derived is not None and derived > 1:
        if pp < 2:
            yield "interleaving needs pp > 1"
        elif not config.get("overlap_p2p_comm") and pp < 3:
            yield "interleaving without overlapped sends needs pp > 2"
    sized = any(
        config.get(f"num_layers_in_{end}_pipeline_stage") for end in ("first", "last")
    )
    if layout is None and vpp is None and not sized and pp > 0:
        counted = arch["num_layers"]
        counted += bool(config.get("account_for_embedding_in_pipeline_split"))
        counted += bool(config.get("account_for_loss_in_pipeline_split"))
        if counted % pp:
            yield "layers divisible by pp"


def _unrolled(layout: str) -> str:
    from megatron.core.transformer.pipeline_parallel_layer_layout import (
        PipelineParallelLayerLayout,
    )

    try:
        stages = PipelineParallelLayerLayout.get_num_stages_from_str(layout)
    except AssertionError:
        return ""
    return "|" * (stages - 1)


def _layout(layout: str, pp: int) -> Iterator[str]:
    from megatron.core.transformer.pipeline_parallel_layer_layout import (
        PipelineParallelLayerLayout,
    )

    try:
        stages = PipelineParallelLayerLayout.get_num_stages_from_str(layout)
    except AssertionError:
        yield "layout readable"
        return
    if pp < 1 or stages % pp:
        yield "stages of the layout divisible by pp"


def _context(
    case: Mapping[str, Any], arch: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[str]:
    del arch
    cp, style = config.get("cp", 1), config.get("cp_comm_type", "p2p")
    sizes = config.get("hierarchical_context_parallel_sizes")
    if cp > 1 and case["seq"] % (2 * cp):
        yield "sequence length divisible by 2 * cp"
    styles = style if isinstance(style, list) else [style]
    if "a2a+p2p" in styles and sizes is None:
        yield "a2a+p2p needs hierarchical context parallel sizes"
    if sizes is not None and prod(sizes) != cp:
        yield "hierarchical context parallel sizes multiply to cp"


def _recompute(
    case: Mapping[str, Any], arch: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[str]:
    del case, arch
    granularity = config.get("recompute_granularity")
    method = config.get("recompute_method")
    if granularity == "selective" and method is not None:
        yield "selective recomputation takes no method"
    if config.get("distribute_saved_activations"):
        if config.get("tp", 1) < 2:
            yield "distributing saved activations needs tp > 1"
        if granularity != "full":
            yield "distributing saved activations needs full recomputation"
        if method is None:
            yield "distributing saved activations needs a method"


def _sharding(
    case: Mapping[str, Any], arch: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[str]:
    del case
    sharded = bool(config.get("use_distributed_optimizer"))
    fsdp, fsdp2 = config.get("use_megatron_fsdp"), config.get("use_torch_fsdp2")
    gather = config.get("overlap_param_gather")
    if gather and not (sharded or fsdp):
        yield "overlap_param_gather needs the distributed optimizer"
    if gather and not config.get("overlap_grad_reduce"):
        yield "overlap_param_gather needs overlap_grad_reduce"
    if config.get("overlap_param_gather_with_optimizer_step"):
        virtual = config.get("vpp") is not None and config["vpp"] > 1
        if not (sharded and gather and virtual):
            yield "gather with the optimizer step needs sharding, gather and vpp"
    if config.get("optimizer_cpu_offload"):
        if not config.get("use_precision_aware_optimizer"):
            yield "optimizer offload needs the precision-aware optimizer"
        delayed = config.get("fp8_recipe", "delayed") == "delayed"
        if config.get("fp8_param_gather") and not delayed:
            yield "optimizer offload with an FP8 gather needs delayed scaling"
    if config.get("fp8_param_gather") and not (sharded or fsdp or fsdp2):
        yield "fp8_param_gather needs the distributed optimizer or FSDP"
    if fsdp2:
        yield from _torch_fsdp2(arch, config, sharded)


def _torch_fsdp2(
    arch: Mapping[str, Any], config: Mapping[str, Any], sharded: bool
) -> Iterator[str]:
    broken = {
        "pp = 1": config.get("pp", 1) != 1,
        "ep = 1": config.get("ep", 1) != 1,
        "no distributed optimizer": sharded,
        "no gradient accumulation fusion": config.get("gradient_accumulation_fusion"),
        "untied embeddings": arch.get("tied_embeddings"),
        "no fp16": config.get("precision") == "fp16",
    }
    yield from (f"torch FSDP2 needs {need}" for need, is_so in broken.items() if is_so)


def _experts(
    case: Mapping[str, Any], arch: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[str]:
    del case
    ep, experts = config.get("ep", 1), arch.get("num_moe_experts")
    if arch.get("force_zero_experts"):
        experts = 0
    if ep > 1 and experts is None:
        yield "expert parallelism needs experts"
    if ep > 1 and experts and experts % ep:
        yield "experts divisible by ep"
    padded = config.get("moe_pad_experts_for_cuda_graph_inference")
    if config.get("cuda_graph_impl") == "local" and ep > 1 and not padded:
        yield "local CUDA graphs with ep > 1 need padded experts"
