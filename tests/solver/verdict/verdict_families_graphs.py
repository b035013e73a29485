"""Families of the rules of CUDA graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verdict_bases import Case, groups_of
from verdict_makers import Family, any_of, made

if TYPE_CHECKING:
    import random

MOE, DENSE = groups_of(moe=True), groups_of(moe=False)
_FP8 = {"fp8": ("hybrid", "e4m3"), "fp8_recipe": ("tensorwise", "blockwise", "mxfp8")}
_DELAYED = {"fp8": ("hybrid", "e4m3"), "fp8_recipe": "delayed"}
_TE = {"cuda_graph_impl": "transformer_engine"}
_LOCAL = {"cuda_graph_impl": "local"}
_PADDED = {"moe_expert_capacity_factor": 1.0, "moe_pad_expert_input_to_capacity": True}
_FULL = {
    "recompute_granularity": "full",
    "recompute_method": ("uniform", "block"),
    "recompute_num_layers": (1, 2),
}
_MIXED, _SPARSE = ("moe-every-2", "latent-28"), ("moe-32", "moe-48", "moe-shared-27")
_SOLE = {"ep": 1}


def _ends(inside: bool) -> Any:
    def then(rng: random.Random, case: Case) -> None:
        roof = case["arch"]["num_layers"] // case["config"]["pp"]
        counts = [rng.choice((0, 1, roof, rng.randrange(roof + 1))) for _ in range(2)]
        if not inside:
            beyond = rng.choice((roof + 1, roof + 5, 200, -1))
            counts[rng.randrange(2)] = beyond
        case["config"] |= {
            "num_layers_at_start_in_bf16": counts[0],
            "num_layers_at_end_in_bf16": counts[1],
        }

    return then


def _recomputed(*modules: str) -> dict[str, Any]:
    return {"recompute_granularity": "selective", "recompute_modules": list(modules)}


GRAPHS = [
    Family(
        "graph-names",
        any_of(
            made(cuda_graph_impl=("cudnn", "torch", "")),
            made(
                cuda_graph_impl=("none", "transformer_engine"),
                cuda_graph_scope=(["layer"], ["attn", "all"], ["full", "attn"]),
            ),
        ),
        any_of(
            made(**_TE, cuda_graph_scope=(None, ["attn"], ["full"])),
            made(_SOLE, **_LOCAL, cuda_graph_scope=(None, ["attn"])),
        ),
    ),
    Family(
        "graph-offload",
        any_of(
            made({"pp": 1}, **_TE, cpu_offloading=True),
            made({"pp": 1, "ep": 1}, **_LOCAL, cpu_offloading=True),
        ),
        any_of(made({"pp": 1}, **_TE), made({"pp": 1}, cpu_offloading=True)),
    ),
    Family(
        "graph-iteration",
        made(**_TE, cuda_graph_scope=(["full_iteration"], ["attn", "full_iteration"])),
        any_of(
            made(_SOLE, **_LOCAL, cuda_graph_scope=["full_iteration"]),
            made(cuda_graph_scope=["full_iteration"]),
        ),
    ),
    Family(
        "graph-moe-router",
        any_of(
            made(
                {"arch": MOE},
                **_TE,
                **_PADDED,
                cuda_graph_scope=(["moe", "moe_router"], ["attn", "moe", "moe_router"]),
            ),
            made(
                {"arch": MOE, "ep": 1},
                **_LOCAL,
                **_PADDED,
                cuda_graph_scope=["moe", "moe_preprocess"],
            ),
        ),
        any_of(
            made(
                {"arch": MOE},
                **_TE,
                **_PADDED,
                cuda_graph_scope=(["moe"], ["moe_router"], ["attn", "moe"]),
            ),
            made({"arch": MOE, "ep": 1}, **_LOCAL, cuda_graph_scope=["moe_router"]),
        ),
    ),
    Family(
        "graph-preprocess",
        made(
            {"arch": MOE},
            **_TE,
            cuda_graph_scope=(["moe_preprocess"], ["attn", "moe_preprocess"]),
        ),
        any_of(
            made(
                {"arch": MOE}, **_TE, cuda_graph_scope=["moe_router", "moe_preprocess"]
            ),
            made({"arch": MOE, "ep": 1}, **_LOCAL, cuda_graph_scope=["moe_preprocess"]),
        ),
    ),
    Family(
        "graph-moe",
        any_of(
            made({"arch": DENSE}, **_TE, cuda_graph_scope=(["moe"], ["moe_router"])),
            made({"arch": DENSE}, **_LOCAL, cuda_graph_scope=["moe_router"]),
            made(
                {"arch": ("moe-32", "moe-48"), "ep": 1},
                **_TE,
                cuda_graph_scope=(["moe_router"], ["attn", "moe_router"]),
                arch={
                    "num_moe_experts": 1,
                    "moe_router_topk": 1,
                    "moe_router_pre_softmax": True,
                },
            ),
        ),
        any_of(
            made({"arch": MOE}, **_TE, cuda_graph_scope=["moe_router"]),
            made({"arch": DENSE}, **_TE, cuda_graph_scope=(["attn"], ["mlp"])),
            made({"arch": DENSE}, cuda_graph_scope=["moe"]),
        ),
    ),
    Family(
        "graph-mlp",
        made({"arch": _SPARSE}, **_TE, cuda_graph_scope=(["mlp"], ["attn", "mlp"])),
        any_of(
            made({"arch": _MIXED}, **_TE, cuda_graph_scope=(["mlp"], ["attn", "mlp"])),
            made({"arch": DENSE}, **_TE, cuda_graph_scope=["mlp"]),
            made({"arch": _SPARSE}, cuda_graph_scope=["mlp"]),
        ),
    ),
    Family(
        "graph-padding",
        any_of(
            made({"arch": MOE}, **_TE, cuda_graph_scope=["moe"]),
            made(
                {"arch": MOE},
                **_TE,
                cuda_graph_scope=["moe"],
                moe_expert_capacity_factor=1.0,
            ),
        ),
        made(
            {"arch": MOE}, **_TE, **_PADDED, cuda_graph_scope=(["moe"], ["attn", "moe"])
        ),
    ),
    Family(
        "graph-sync",
        made(
            {"arch": MOE},
            **_TE,
            moe_expert_capacity_factor=(1.0, 2.0),
            cuda_graph_scope=["moe_router", "moe_preprocess"],
        ),
        any_of(
            made(
                {"arch": MOE},
                **_TE,
                **_PADDED,
                cuda_graph_scope=["moe_router", "moe_preprocess"],
            ),
            made(
                {"arch": MOE},
                **_TE,
                moe_expert_capacity_factor=(1.0, 2.0),
                moe_token_dispatcher_type="allgather",
                cuda_graph_scope=["moe_router", "moe_preprocess"],
            ),
            made(
                {"arch": MOE}, **_TE, cuda_graph_scope=["moe_router", "moe_preprocess"]
            ),
        ),
    ),
    Family(
        "graph-full-recompute",
        any_of(
            made(**_TE, **_FULL, cuda_graph_scope=(None, ["attn"])),
            made(
                _SOLE,
                **_LOCAL,
                **_FULL,
                cuda_graph_scope=(None, ["attn", "full_iteration"]),
            ),
        ),
        any_of(
            made(_SOLE, **_LOCAL, **_FULL, cuda_graph_scope=["full_iteration"]),
            made(**_FULL, cuda_graph_scope=["attn"]),
        ),
    ),
    Family(
        "graph-recompute-moe",
        made(
            {"arch": MOE},
            **_TE,
            cuda_graph_scope=(["moe_router"], ["attn", "moe_router"]),
            **_recomputed("moe"),
        ),
        any_of(
            made({"arch": MOE}, **_TE, cuda_graph_scope=["attn"], **_recomputed("moe")),
            made(
                {"arch": MOE, "ep": 1},
                **_LOCAL,
                cuda_graph_scope=["moe_router"],
                **_recomputed("moe"),
            ),
        ),
    ),
    Family(
        "graph-dropout",
        any_of(
            made(
                **_TE,
                dropout=True,
                cuda_graph_scope=(None, ["attn"]),
                **_recomputed("core_attn"),
            ),
            made(
                {"arch": DENSE},
                **_TE,
                dropout=True,
                cuda_graph_scope=(None, ["mlp"]),
                **_recomputed("mlp"),
            ),
            made(
                _SOLE,
                **_LOCAL,
                dropout=True,
                cuda_graph_scope=(None, ["full_iteration"]),
                **_recomputed("core_attn", "mlp"),
            ),
        ),
        any_of(
            made(**_TE, cuda_graph_scope=(None, ["attn"]), **_recomputed("core_attn")),
            made(
                {"arch": DENSE},
                **_TE,
                dropout=True,
                cuda_graph_scope=["mlp"],
                **_recomputed("core_attn"),
            ),
            made(**_TE, dropout=True, cuda_graph_scope=["attn"]),
        ),
    ),
    Family(
        "graph-local-ep",
        made(
            {"arch": MOE, "ep": (2, 4, 6)}, **_LOCAL, cuda_graph_scope=(None, ["attn"])
        ),
        any_of(
            made(
                {"arch": MOE, "ep": (2, 4, 6)},
                **_LOCAL,
                moe_pad_experts_for_cuda_graph_inference=True,
            ),
            made({"arch": MOE, "ep": 1}, **_LOCAL),
        ),
    ),
]
FAMILIES = GRAPHS
