"""Configurations drawn over all axes at once, about half of them legal.

A legal skeleton is drawn, then options by rules of thumb that mostly keep it legal;
last, some axes are set to anything. Whether it is legal is for others to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verdict_bases import (
    Case,
    divisors,
    draw_base,
    groups_of,
    layout,
    micro_batches,
    set_layers,
    set_micro_batches,
)

if TYPE_CHECKING:
    import random

#: Values that an axis may be set to whatever the rest says.
ANYTHING: dict[str, tuple[Any, ...]] = {
    "tp": (1, 2, 3, 4, 8, 16),
    "pp": (1, 2, 3, 4, 8),
    "vpp": (None, None, 1, 2, 3, 4),
    "cp": (1, 2, 4),
    "ep": (1, 2, 4, 8, 3),
    "etp": (None, 1, 2, 4),
    "sequence_parallel": (False, True),
    "num_layers_in_first_pipeline_stage": (None, None, 0, 2, 4, 6),
    "num_layers_in_last_pipeline_stage": (None, None, 1, 2, 4, 6),
    "account_for_embedding_in_pipeline_split": (False, True),
    "account_for_loss_in_pipeline_split": (False, True),
    "vpp_from_layout": (True, True, False),
    "recompute_granularity": (None, "full", "selective", "some"),
    "recompute_method": (None, "uniform", "block", "random"),
    "recompute_num_layers": (None, 1, 2, 100),
    "recompute_modules": (
        None,
        ["core_attn"],
        ["layernorm", "mlp"],
        ["moe"],
        ["moe_act"],
        ["shared_experts"],
        ["mla_up_proj"],
        ["attention"],
    ),
    "distribute_saved_activations": (False, True),
    "microbatch_group_size_per_vp_stage": (None, 2, 3, 4, 5, 8),
    "overlap_p2p_comm": (False, True),
    "overlap_p2p_comm_warmup_flush": (False, True),
    "moe_token_dispatcher_type": ("alltoall", "allgather", "flex", "ring"),
    "moe_flex_dispatcher_backend": ("deepep", "hybridep", "nccl"),
    "moe_enable_deepep": (False, True),
    "moe_grouped_gemm": (False, True),
    "moe_shared_expert_overlap": (False, True),
    "moe_expert_capacity_factor": (None, 1.0, 2.0, -1.0),
    "moe_pad_expert_input_to_capacity": (False, True),
    "moe_router_padding_for_quantization": (False, True),
    "moe_permute_fusion": (False, True),
    "moe_pad_experts_for_cuda_graph_inference": (False, True),
    "precision": ("bf16", "fp16", "fp32"),
    "fp8": (None, "hybrid", "e4m3"),
    "fp8_recipe": ("delayed", "tensorwise", "blockwise", "mxfp8", "custom"),
    "fp8_param_gather": (False, True),
    "fp4": (False, True),
    "first_last_layers_bf16": (False, True),
    "num_layers_at_start_in_bf16": (1, 0, 4, 200),
    "num_layers_at_end_in_bf16": (1, 0, 4, -1),
    "dropout": (False, True),
    "cpu_offloading": (False, True),
    "cpu_offloading_num_layers": (0, 1, 10, 200),
    "fine_grained_activation_offloading": (False, True),
    "offload_modules": ([], ["core_attn"], ["attn_proj"], ["mlp"], ["moe_act"]),
    "overlap_moe_expert_parallel_comm": (False, True),
    "delay_wgrad_compute": (False, True),
    "ep_overlap_early_attn_memory_release": (False, True),
    "defer_embedding_wgrad_compute": (False, True),
    "wgrad_deferral_limit": (0, 2, -1),
    "gradient_accumulation_fusion": (False, True),
    "tp_comm_overlap": (False, True),
    "cp_comm_type": ("p2p", "a2a", "allgather", "a2a+p2p", ["p2p", "a2a"]),
    "hierarchical_context_parallel_sizes": (None, [2, 1], [2, 2]),
    "num_distributed_optimizer_instances": (1, 2, 3, 4),
    "use_distributed_optimizer": (True, False),
    "overlap_grad_reduce": (False, True),
    "overlap_param_gather": (False, True),
    "overlap_param_gather_with_optimizer_step": (False, True),
    "use_precision_aware_optimizer": (False, True),
    "optimizer_cpu_offload": (False, True),
    "use_torch_fsdp2": (False, True),
    "cuda_graph_impl": ("none", "local", "transformer_engine"),
    "cuda_graph_scope": (
        None,
        ["attn"],
        ["mlp"],
        ["moe"],
        ["moe_router"],
        ["moe_router", "moe_preprocess"],
        ["full_iteration"],
    ),
    "mtp_num_layers": (None, 1, 2),
    "variable_seq_lengths": (False, True),
    "pad_vocab": (True, False),
    "order": ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "cp-tp-ep-dp-pp"),
}


def _stages(rng: random.Random, case: Case) -> None:
    """Choose how layers are split over the stages."""
    config, layers = case["config"], case["arch"]["num_layers"]
    pp, vpp = config["pp"], config["vpp"] or 1
    kind = rng.choice(("even", "even", "sizes", "accounted", "layout"))
    if pp == 1 or kind == "even":
        return
    if kind == "layout":
        chunks, mtp = rng.choice((1, 2, 3)), rng.choice((None, None, 1))
        config |= {
            "vpp": None,
            "mtp_num_layers": mtp,
            "overlap_p2p_comm": chunks > 1,
            "pipeline_model_parallel_layout": "|".join(
                layout(rng, layers, pp * chunks, mtp or 0)
            ),
        }
        set_micro_batches(case, pp * rng.choice((1, 2, 3)))
    elif kind == "accounted":
        config["account_for_embedding_in_pipeline_split"] = True
        config["account_for_loss_in_pipeline_split"] = rng.random() < 0.5
        counted = 1 + config["account_for_loss_in_pipeline_split"]
        set_layers(case, pp * vpp * rng.choice((3, 4, 5)) - counted)
    elif pp > 2:
        ends = [vpp * rng.choice((1, 2, 3)) for _ in range(2)]
        config["num_layers_in_first_pipeline_stage"] = ends[0]
        config["num_layers_in_last_pipeline_stage"] = ends[1]
        set_layers(case, sum(ends) + (pp - 2) * vpp * rng.choice((1, 2, 4)))


def _memory(rng: random.Random, case: Case) -> None:
    config, arch = case["config"], case["arch"]
    kind = rng.choice(("none", "full", "selective", "offload", "fine", "none"))
    if kind == "full":
        config["recompute_granularity"] = "full"
        config["recompute_method"] = rng.choice(("uniform", "block"))
        config["recompute_num_layers"] = rng.choice((1, 2, 4))
    elif kind == "selective":
        names = ["core_attn", "layernorm", "mlp", "moe"]
        if "mla" in arch:
            names.append("mla_up_proj")
        if config["moe_grouped_gemm"]:
            names.append("moe_act")
        config["recompute_granularity"] = "selective"
        config["recompute_modules"] = rng.sample(names, rng.randrange(1, 4))
    elif kind == "offload" and config["pp"] == 1:
        config["cpu_offloading"] = True
        config["cpu_offloading_num_layers"] = rng.randrange(arch["num_layers"])
    elif kind == "fine":
        names = ["core_attn", "expert_fc1", "moe_act", "mlp_norm", "qkv_linear"]
        config["fine_grained_activation_offloading"] = True
        config["offload_modules"] = rng.sample(names, rng.randrange(1, 4))


def _numbers(rng: random.Random, case: Case) -> None:
    config = case["config"]
    config["precision"] = rng.choice(("bf16", "bf16", "fp16", "fp32"))
    if rng.random() < 0.4:
        config["fp8"] = rng.choice(("hybrid", "e4m3"))
        config["fp8_recipe"] = rng.choice(("tensorwise", "blockwise", "mxfp8"))
        config["fp8_param_gather"] = rng.random() < 0.4
        config["moe_router_padding_for_quantization"] = rng.random() < 0.3
        if rng.random() < 0.3:
            config["first_last_layers_bf16"] = True
    elif rng.random() < 0.1:
        config["fp4"] = True


def _experts(rng: random.Random, case: Case) -> None:
    config, arch = case["config"], case["arch"]
    if "num_moe_experts" not in arch:
        return
    config["moe_grouped_gemm"] = rng.random() < 0.5
    config["moe_permute_fusion"] = rng.random() < 0.5
    if config["ep"] > 1 and rng.random() < 0.4:
        config["moe_token_dispatcher_type"] = "flex"
        backend = rng.choice(("deepep", "hybridep"))
        config["moe_flex_dispatcher_backend"] = backend
        config["moe_enable_deepep"] = backend == "deepep" and rng.random() < 0.5
    elif rng.random() < 0.3:
        config["moe_token_dispatcher_type"] = "allgather"
    if arch.get("moe_router_load_balancing_type") != "sinkhorn" and rng.random() < 0.3:
        config["moe_expert_capacity_factor"] = rng.choice((1.0, 1.5))
    virtual = config["pp"] == 1 or config["vpp"] is not None
    if config["ep"] > 1 and virtual and rng.random() < 0.4:
        config["overlap_moe_expert_parallel_comm"] = True
        config["delay_wgrad_compute"] = rng.random() < 0.5
        config["ep_overlap_early_attn_memory_release"] = rng.random() < 0.3
    elif rng.random() < 0.3:
        config["moe_shared_expert_overlap"] = True


def _communication(rng: random.Random, case: Case) -> None:
    config = case["config"]
    cp, tp = config["cp"], config["tp"]
    if cp > 1:
        config["cp_comm_type"] = rng.choice(("p2p", "a2a", "allgather"))
        if rng.random() < 0.2:
            first = rng.choice(divisors(cp))
            config["cp_comm_type"] = "a2a+p2p"
            config["hierarchical_context_parallel_sizes"] = [first, cp // first]
    if tp > 1 and config["sequence_parallel"]:
        config["tp_comm_overlap"] = rng.random() < 0.4
    config["overlap_grad_reduce"] = rng.random() < 0.6
    gathers = config["overlap_grad_reduce"] and rng.random() < 0.6
    config["overlap_param_gather"] = gathers
    config["use_precision_aware_optimizer"] = rng.random() < 0.4
    offloads = config["use_precision_aware_optimizer"] and not config["fp8"]
    config["optimizer_cpu_offload"] = offloads and rng.random() < 0.4
    config["gradient_accumulation_fusion"] = rng.random() < 0.5
    if config["pp"] > 1 and config["gradient_accumulation_fusion"]:
        config["defer_embedding_wgrad_compute"] = rng.random() < 0.4
    if config["vpp"] is not None:
        config["overlap_p2p_comm_warmup_flush"] = rng.random() < 0.3
        number = micro_batches(case)
        config["microbatch_group_size_per_vp_stage"] = rng.choice(
            (None, config["pp"], number)
        )


def _graphs(rng: random.Random, case: Case) -> None:
    config = case["config"]
    if rng.random() < 0.15 and not config["cpu_offloading"]:
        config["cuda_graph_impl"] = "transformer_engine"
        config["cuda_graph_scope"] = rng.choice((None, ["attn"], ["attn"]))


def draw(rng: random.Random) -> Case:
    """Draw one case; small arrangements and large ones, dense and sparse."""
    wants: dict[str, Any] = {"arch": groups_of(moe=rng.random() < 0.5)}
    if rng.random() < 0.35:
        wants |= {"vpp": (2, 3, 4), "pp": (2, 3, 4)}
    case = draw_base(rng, **wants)
    for step in (_stages, _experts, _numbers, _memory, _communication, _graphs):
        step(rng, case)
    for _ in range(rng.choice((0, 1, 2, 3, 4))):
        _set_anything(rng, case)
    return case


def _set_anything(rng: random.Random, case: Case) -> None:
    """Set one axis, or a size of the run, without a look at the others."""
    at = rng.randrange(len(ANYTHING) + 4)
    if at < len(ANYTHING):
        name = sorted(ANYTHING)[at]
        case["config"][name] = rng.choice(ANYTHING[name])
        return
    name = ("global_batch", "micro_batch", "seq", "world")[at - len(ANYTHING)]
    case[name] = max(1, case[name] + rng.choice((-1, 1, 2, 4, case[name])))
