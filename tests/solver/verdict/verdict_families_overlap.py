"""Families of the rules of overlap and sharding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verdict_bases import Case, groups_of
from verdict_makers import Family, any_of, made

if TYPE_CHECKING:
    import random

MOE, DENSE = groups_of(moe=True), groups_of(moe=False)
SHARED = groups_of(shared=True)
_MODULES = ("core_attn", "layernorm", "mlp", "moe", "shared_experts")
_OFFLOADS = (
    "core_attn",
    "expert_fc1",
    "moe_act",
    "attn_norm",
    "mlp_norm",
    "qkv_linear",
)
_FULL = {
    "recompute_granularity": "full",
    "recompute_method": ("uniform", "block"),
    "recompute_num_layers": (1, 2, 4),
}


def _some(names: tuple[str, ...], *always: str, least: int = 1) -> Any:
    """Return a choice of some names, those of ``always`` among them."""

    def choose(rng: random.Random, case: Case) -> list[str]:
        del case
        number = rng.randrange(least, len(names) + 1)
        return [*always, *rng.sample(names, number)]

    return choose


def _selective(*always: str, **more: Any) -> dict[str, Any]:
    least = 0 if always else 1
    others = tuple(n for n in _MODULES if n not in always)
    return {
        "recompute_granularity": "selective",
        "recompute_modules": _some(others, *always, least=least),
        **more,
    }


def _kept_layers(inside: bool) -> Any:
    def choose(rng: random.Random, case: Case) -> int:
        layers = case["arch"]["num_layers"]
        if inside:
            return rng.choice((0, 1, layers - 1, rng.randrange(layers)))
        return rng.choice((layers, layers + 1, 2 * layers, -1))

    return choose


_ONE = {"pp": 1}
_FINE = {"fine_grained_activation_offloading": True}
_A2A = {"overlap_moe_expert_parallel_comm": True}
_EXPERTS = {"arch": MOE, "ep": (2, 4, 6), "pp": 1}
_STAGED = {"arch": ("moe-48", "moe-32", "moe-every-2"), "ep": (2, 4), "pp": 2, "vpp": 2}
_DEFER = {"defer_embedding_wgrad_compute": True, "gradient_accumulation_fusion": True}
_FSDP2 = {"use_torch_fsdp2": True, "use_distributed_optimizer": False}
_GATHER = {"overlap_param_gather": True, "overlap_grad_reduce": True}
OVERLAP = [
    Family(
        "ep-a2a-overlap",
        made({"arch": MOE, "ep": 1, "pp": 1}, **_A2A),
        any_of(made(_EXPERTS, **_A2A), made({"arch": MOE, "ep": 1, "pp": 1})),
    ),
    Family(
        "ep-a2a-overlap-vpp",
        made({"arch": MOE, "ep": (2, 4), "pp": (2, 3, 4)}, **_A2A),
        any_of(made(_STAGED, **_A2A), made(_EXPERTS, **_A2A)),
    ),
    Family(
        "ep-a2a-overlap-dispatcher",
        made(_EXPERTS, **_A2A, moe_token_dispatcher_type="allgather"),
        made(_EXPERTS, **_A2A, moe_token_dispatcher_type=("alltoall", "flex")),
    ),
    Family(
        "ep-a2a-overlap-recompute",
        any_of(
            made(_EXPERTS, **_A2A, **_FULL),
            made(_EXPERTS, **_A2A, recompute_method=("uniform", "block")),
            made(_EXPERTS, **_A2A, recompute_num_layers=(1, 2)),
        ),
        any_of(made(_EXPERTS, **_A2A, **_selective()), made(_EXPERTS, **_A2A)),
    ),
    Family(
        "ep-a2a-overlap-precision",
        made(_EXPERTS, **_A2A, precision="fp32"),
        any_of(
            made(_EXPERTS, **_A2A, precision=("bf16", "fp16")),
            made(_EXPERTS, precision="fp32"),
        ),
    ),
    Family(
        "ep-a2a-overlap-shared",
        made(
            {"arch": MOE, "ep": (2, 4), "pp": 1}, **_A2A, moe_shared_expert_overlap=True
        ),
        any_of(
            made({"arch": SHARED, "ep": (2, 4), "pp": 1}, **_A2A),
            made(_EXPERTS, moe_shared_expert_overlap=True),
        ),
    ),
    Family(
        "ep-a2a-overlap-mtp",
        any_of(
            made(_EXPERTS, **_A2A, mtp_num_layers=(1, 2)),
            made(_STAGED, **_A2A, mtp_num_layers=(2, 3)),
        ),
        any_of(
            made(_STAGED, **_A2A, mtp_num_layers=1),
            made(_EXPERTS, mtp_num_layers=(1, 2)),
        ),
    ),
    Family(
        "ep-a2a-overlap-graph",
        any_of(
            made(
                _EXPERTS,
                **_A2A,
                cuda_graph_impl="local",
                moe_pad_experts_for_cuda_graph_inference=True,
                cuda_graph_scope=(None, ["attn"]),
            ),
            made(
                _EXPERTS | {"arch": "moe-every-2"},
                **_A2A,
                cuda_graph_impl="transformer_engine",
                cuda_graph_scope=["mlp"],
            ),
            made(
                _EXPERTS,
                **_A2A,
                cuda_graph_impl="transformer_engine",
                cuda_graph_scope=["moe"],
                moe_expert_capacity_factor=1.0,
                moe_pad_expert_input_to_capacity=True,
            ),
        ),
        made(
            _EXPERTS,
            **_A2A,
            cuda_graph_impl="transformer_engine",
            cuda_graph_scope=(None, ["attn"], ["attn", "moe_router"]),
        ),
    ),
    Family(
        "delay-wgrad",
        made(_EXPERTS, delay_wgrad_compute=True),
        made(_EXPERTS, **_A2A, delay_wgrad_compute=(True, False)),
    ),
    Family(
        "early-release",
        made(_EXPERTS, ep_overlap_early_attn_memory_release=True),
        made(_EXPERTS, **_A2A, ep_overlap_early_attn_memory_release=True),
    ),
    Family(
        "defer-embedding",
        made(_ONE, **_DEFER),
        any_of(
            made({"pp": (2, 3, 4)}, **_DEFER),
            made(_ONE, gradient_accumulation_fusion=True),
        ),
    ),
    Family(
        "defer-embedding-fusion",
        made({"pp": (2, 3, 4)}, defer_embedding_wgrad_compute=True),
        made({"pp": (2, 3, 4)}, **_DEFER),
    ),
    Family(
        "defer-embedding-limit",
        made({"pp": (2, 3, 4)}, **_DEFER, wgrad_deferral_limit=(-1, -2, -10)),
        any_of(
            made({"pp": (2, 3, 4)}, **_DEFER, wgrad_deferral_limit=(0, 1, 22)),
            made({"pp": (2, 3, 4)}, wgrad_deferral_limit=-1),
        ),
    ),
    Family(
        "tp-overlap",
        any_of(
            made({"arch": DENSE, "tp": (2, 4), "sp": False}, tp_comm_overlap=True),
            made({"tp": 1}, tp_comm_overlap=True),
        ),
        any_of(
            made({"tp": (2, 4), "sp": True}, tp_comm_overlap=True),
            made({"arch": DENSE, "tp": (2, 4), "sp": False}),
        ),
    ),
]
_SOLE = {"pp": 1, "ep": 1}
SHARDING = [
    Family("fsdp2", made({"pp": (2, 3), "ep": 1}, **_FSDP2), made(_SOLE, **_FSDP2)),
    Family(
        "fsdp2-ep",
        made({"arch": MOE, "pp": 1, "ep": (2, 4)}, **_FSDP2),
        made(_SOLE, **_FSDP2),
    ),
    Family("fsdp2-optimizer", made(_SOLE, use_torch_fsdp2=True), made(_SOLE, **_FSDP2)),
    Family(
        "fsdp2-fusion",
        made(_SOLE, **_FSDP2, gradient_accumulation_fusion=True),
        any_of(made(_SOLE, **_FSDP2), made(_SOLE, gradient_accumulation_fusion=True)),
    ),
    Family(
        "fsdp2-tied",
        made(_SOLE, **_FSDP2, arch={"tied_embeddings": True}),
        any_of(made(_SOLE, **_FSDP2), made(_SOLE, arch={"tied_embeddings": True})),
    ),
    Family(
        "fsdp2-fp16",
        made(_SOLE, **_FSDP2, precision="fp16"),
        any_of(
            made(_SOLE, **_FSDP2, precision=("bf16", "fp32")),
            made(_SOLE, precision="fp16"),
        ),
    ),
    Family(
        "param-gather",
        made(**_GATHER, use_distributed_optimizer=False),
        any_of(made(**_GATHER), made(use_distributed_optimizer=False)),
    ),
    Family(
        "param-gather-reduce",
        made(overlap_param_gather=True),
        any_of(made(**_GATHER), made(overlap_grad_reduce=True)),
    ),
    Family(
        "param-gather-step",
        any_of(
            made(**_GATHER, overlap_param_gather_with_optimizer_step=True),
            made(_STAGED, overlap_param_gather_with_optimizer_step=True),
        ),
        any_of(
            made(_STAGED, **_GATHER, overlap_param_gather_with_optimizer_step=True),
            made(**_GATHER),
        ),
    ),
    Family(
        "precision-aware",
        made(use_precision_aware_optimizer=True, use_distributed_optimizer=False),
        any_of(
            made(use_precision_aware_optimizer=True),
            made(use_distributed_optimizer=False),
        ),
    ),
    Family(
        "optimizer-offload",
        made(optimizer_cpu_offload=True),
        any_of(
            made(optimizer_cpu_offload=True, use_precision_aware_optimizer=True),
            made(use_precision_aware_optimizer=True),
        ),
    ),
    Family(
        "optimizer-offload-fp8",
        made(
            optimizer_cpu_offload=True,
            use_precision_aware_optimizer=True,
            fp8="hybrid",
            fp8_param_gather=True,
            fp8_recipe=("tensorwise", "blockwise", "mxfp8"),
        ),
        any_of(
            made(
                optimizer_cpu_offload=True,
                use_precision_aware_optimizer=True,
                fp8="hybrid",
                fp8_param_gather=True,
            ),
            made(
                optimizer_cpu_offload=True,
                use_precision_aware_optimizer=True,
                fp8="hybrid",
                fp8_recipe="tensorwise",
            ),
        ),
    ),
]
FAMILIES = [*OVERLAP, *SHARDING]
