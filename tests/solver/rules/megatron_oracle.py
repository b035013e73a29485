"""megatron-core's own answer: its configuration object and its split of layers.

Needs torch and megatron-core 0.16.1, both on a CPU. TransformerEngine and its fused
kernels are taken to be there, in any version: what they refuse is not asked.
"""

import copy
from typing import Any

import pytest

#: Entries of a case's arch that ``TransformerConfig`` takes under the same name.
_ARCH = (
    "num_layers",
    "hidden_size",
    "num_attention_heads",
    "num_query_groups",
    "kv_channels",
    "ffn_hidden_size",
    "num_moe_experts",
    "moe_router_topk",
    "moe_ffn_hidden_size",
    "moe_layer_freq",
    "moe_shared_expert_intermediate_size",
    "moe_router_score_function",
    "moe_router_num_groups",
    "moe_router_group_topk",
    "moe_router_enable_expert_bias",
    "moe_router_load_balancing_type",
)
_RENAMED = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "vpp": "virtual_pipeline_model_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
    "etp": "expert_tensor_parallel_size",
    "fp8_param_gather": "fp8_param",
}
#: Entries of a case's config that other objects or the launcher take.
_ELSEWHERE = {
    "order",
    "optimizer_cpu_offload",
    "overlap_grad_reduce",
    "overlap_param_gather",
    "num_distributed_optimizer_instances",
    "pad_vocab",
    "precision",
    "use_distributed_optimizer",
    "use_precision_aware_optimizer",
    "use_torch_fsdp2",
    "vpp_from_layout",
}
_FUSED = (
    "fused_permute",
    "fused_permute_with_probs",
    "fused_sort_chunks_by_index",
    "fused_sort_chunks_by_index_with_probs",
    "fused_unpermute",
)


class Megatron:
    """The imported package, with TransformerEngine taken for granted."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        core = "megatron.core."
        self.torch: Any = pytest.importorskip("torch")
        self.config: Any = pytest.importorskip(f"{core}transformer.transformer_config")
        self.state: Any = pytest.importorskip(f"{core}parallel_state")
        self.block: Any = pytest.importorskip(f"{core}transformer.transformer_block")
        self.layer: Any = pytest.importorskip(f"{core}transformer.transformer_layer")
        utils: Any = pytest.importorskip(f"{core}transformer.moe.moe_utils")
        self.patch = patch
        patch.setattr(self.config, "is_te_min_version", lambda *_: True)
        for name in _FUSED:
            patch.setattr(utils, name, object(), raising=False)

    def configure(self, case: dict[str, Any]) -> Any:
        """Build the configuration object, or raise as megatron-core does."""
        arch, given = case["arch"], case["config"]
        named = {n: arch[n] for n in _ARCH if arch.get(n) is not None}
        named |= {_RENAMED.get(n, n): v for n, v in given.items()}
        for name in _ELSEWHERE:
            named.pop(name, None)
        if arch.get("force_zero_experts"):
            named["num_moe_experts"] = 0
        if arch.get("force_moe_ffn"):
            named["moe_ffn_hidden_size"] = arch["force_moe_ffn"]
        gated, silu = arch.get("glu", True), self.torch.nn.functional.silu
        named |= {
            "add_bias_linear": bool(arch.get("bias")),
            "gated_linear_unit": gated,
            "activation_func": silu if gated else self.torch.nn.functional.gelu,
            "bias_activation_fusion": False,
            "attention_dropout": 0.0,
            "hidden_dropout": 0.0,
            "bf16": given["precision"] == "bf16",
            "fp16": given["precision"] == "fp16",
            "params_dtype": self.torch.bfloat16,
            "pipeline_dtype": self.torch.bfloat16,
            "batch_p2p_comm": not given["overlap_p2p_comm"],
        }
        latent = arch.get("mla")
        kind = "MLATransformerConfig" if latent else "TransformerConfig"
        return getattr(self.config, kind)(**copy.deepcopy({**named, **(latent or {})}))

    def places_each_layer_once(self, config: Any, case: dict[str, Any]) -> bool:
        """Ask every rank for its layers; raise as megatron-core does."""
        given = case["config"]
        virtual = given["vpp"]
        if given["pipeline_model_parallel_layout"] is not None and virtual is None:
            told = given["vpp_from_layout"]
            virtual = config.virtual_pipeline_model_parallel_size if told else None
        state, ranks = self.state, config.pipeline_model_parallel_size
        self.patch.setattr(
            state, "_VIRTUAL_PIPELINE_MODEL_PARALLEL_WORLD_SIZE", virtual
        )
        found: list[int] = []
        for rank in range(ranks):
            self.patch.setattr(
                state, "get_pipeline_model_parallel_rank", lambda r=rank: r
            )
            for chunk in range(virtual or 1):
                at = {"vp_stage": None if virtual is None else chunk, "pp_rank": rank}
                count = self.block.get_num_layers_to_build(config, **at)
                start = self.layer.get_transformer_layer_offset(config, **at)
                if count < 0:
                    return False
                found.extend(range(start, start + count))
        return sorted(found) == list(range(config.num_layers))
