"""Families of the rules of recomputation and offload."""

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


def _grouped(fits: bool) -> Any:
    """Take a number of layers that divides, or not, those of every stage."""

    def then(rng: random.Random, case: Case) -> None:
        layers = case["arch"]["num_layers"] // case["config"]["pp"]
        numbers = [n for n in range(1, 41) if (layers % n == 0) == fits]
        case["config"]["recompute_num_layers"] = rng.choice(numbers)

    return then


def _kept_layers(inside: bool) -> Any:
    def choose(rng: random.Random, case: Case) -> int:
        layers = case["arch"]["num_layers"]
        if inside:
            return rng.choice((0, 1, layers - 1, rng.randrange(layers)))
        return rng.choice((layers, layers + 1, 2 * layers, -1))

    return choose


_BY_GROUP = {"recompute_granularity": "full", "recompute_method": "uniform"}
_BY_BLOCK = _BY_GROUP | {"recompute_method": "block"}
_PLAIN = {"arch": (*DENSE, *groups_of(moe=True, bias=False))}
_ONE = {"pp": 1}
_FINE = {"fine_grained_activation_offloading": True}
_A2A = {"overlap_moe_expert_parallel_comm": True}
_EXPERTS = {"arch": MOE, "ep": (2, 4, 6), "pp": 1}
_STAGED = {"arch": ("moe-48", "moe-32", "moe-every-2"), "ep": (2, 4), "pp": 2, "vpp": 2}
_DEFER = {"defer_embedding_wgrad_compute": True, "gradient_accumulation_fusion": True}
_FSDP2 = {"use_torch_fsdp2": True, "use_distributed_optimizer": False}
_GATHER = {"overlap_param_gather": True, "overlap_grad_reduce": True}
RECOMPUTE = [
    Family(
        "recompute-granularity",
        made(**_FULL | {"recompute_granularity": ("some", "partial", "none")}),
        any_of(made(**_FULL), made(**_selective())),
    ),
    Family(
        "recompute-method",
        made(**_FULL | {"recompute_method": ("random", "none", "full")}),
        made(**_FULL),
    ),
    Family(
        "recompute-full",
        any_of(
            made(**_FULL | {"recompute_method": None}),
            made(**_FULL | {"recompute_num_layers": None}),
        ),
        made(**_FULL | {"recompute_num_layers": (1, 2, 100, 1000)}),
    ),
    Family(
        "recompute-count",
        made(**_selective(recompute_num_layers=(1, 2, 4))),
        made(**_selective()),
    ),
    Family(
        "recompute-selective-method",
        made(**_selective(recompute_method=("uniform", "block"))),
        made(**_selective()),
    ),
    Family(
        "recompute-selective",
        any_of(
            made(**_selective("attention")),
            made(**_selective("moe_act")),
            made({"arch": (*DENSE, "moe-32", "moe-48")}, **_selective("mla_up_proj")),
        ),
        any_of(
            made(**_selective("moe_act", moe_grouped_gemm=True)),
            made({"arch": "latent-28"}, **_selective("mla_up_proj")),
            made(**_selective(recompute_modules=([], None))),
        ),
    ),
    Family(
        "recompute-shared",
        made(
            {"arch": SHARED},
            **_selective("shared_experts", moe_shared_expert_overlap=True),
        ),
        any_of(
            made({"arch": SHARED}, **_selective("shared_experts")),
            made(
                {"arch": SHARED},
                recompute_granularity="selective",
                recompute_modules=["core_attn", "mlp"],
                moe_shared_expert_overlap=True,
            ),
            made(
                {"arch": ("moe-32", "moe-48")},
                **_selective("shared_experts", moe_shared_expert_overlap=True),
            ),
        ),
    ),
    Family(
        "recompute-fp8",
        any_of(
            made(**_selective("layernorm", fp8=("hybrid", "e4m3"))),
            made(
                **_selective("moe_act", moe_grouped_gemm=True, fp8=("hybrid", "e4m3"))
            ),
        ),
        any_of(
            made(
                **_selective(
                    "layernorm",
                    fp8="hybrid",
                    fp8_recipe=("tensorwise", "blockwise", "mxfp8"),
                )
            ),
            made(
                recompute_granularity="selective",
                fp8="hybrid",
                recompute_modules=(["core_attn"], ["mlp"]),
            ),
        ),
    ),
    Family(
        "distribute-saved",
        any_of(
            made({"tp": 1}, **_FULL, distribute_saved_activations=True),
            made(
                {"arch": DENSE, "tp": (2, 4), "sp": False},
                distribute_saved_activations=True,
            ),
            made(
                {"arch": DENSE, "tp": (2, 4), "sp": False},
                **_selective(distribute_saved_activations=True),
            ),
        ),
        any_of(
            made(
                {"arch": DENSE, "tp": (2, 4, 8), "sp": False},
                **_FULL,
                distribute_saved_activations=True,
            ),
            made({"tp": 1}, **_FULL),
        ),
    ),
    Family(
        "distribute-saved-sp",
        made({"tp": (2, 4, 8), "sp": True}, **_FULL, distribute_saved_activations=True),
        any_of(
            made(
                {"arch": DENSE, "tp": (2, 4, 8), "sp": False},
                **_FULL,
                distribute_saved_activations=True,
            ),
            made({"tp": (2, 4, 8), "sp": True}, **_FULL),
        ),
    ),
    Family(
        "recompute-uniform",
        made(_PLAIN, then=_grouped(False), **_BY_GROUP),
        any_of(
            made(_PLAIN, then=_grouped(True), **_BY_GROUP),
            made(
                _PLAIN,
                **_BY_GROUP | {"recompute_method": "block"},
                recompute_num_layers=99,
            ),
        ),
    ),
    Family(
        "recompute-mtp",
        made(
            {"arch": ("dense-32", "dense-80", "moe-32", "moe-48"), "pp": (1, 2, 4, 8)},
            mtp_num_layers=(1, 2),
            recompute_granularity="full",
            recompute_method="uniform",
            recompute_num_layers=2,
        ),
        any_of(
            made(
                _PLAIN,
                mtp_num_layers=(1, 2),
                recompute_granularity="full",
                recompute_method="uniform",
                recompute_num_layers=1,
            ),
            made(
                _PLAIN,
                mtp_num_layers=(1, 2),
                recompute_granularity="full",
                recompute_method="block",
                recompute_num_layers=(2, 3),
            ),
            made(
                _PLAIN,
                recompute_granularity="full",
                recompute_method="uniform",
                recompute_num_layers=1,
            ),
        ),
    ),
]
OFFLOAD = [
    Family(
        "offload-layers",
        made(_ONE, cpu_offloading=True, cpu_offloading_num_layers=_kept_layers(False)),
        made(_ONE, cpu_offloading=True, cpu_offloading_num_layers=_kept_layers(True)),
    ),
    Family(
        "offload",
        made(
            {"pp": (2, 3, 4)}, cpu_offloading=True, cpu_offloading_num_layers=(0, 1, 5)
        ),
        any_of(
            made(_ONE, cpu_offloading=True, cpu_offloading_num_layers=(0, 1, 5)),
            made({"pp": (2, 3, 4)}, cpu_offloading_num_layers=(0, 1, 5)),
        ),
    ),
    Family(
        "offload-recompute",
        any_of(
            made(_ONE, cpu_offloading=True, **_FULL),
            made(_ONE, cpu_offloading=True, **_selective()),
        ),
        any_of(made(_ONE, cpu_offloading=True), made(_ONE, **_FULL)),
    ),
    Family(
        "offload-fine",
        made(_ONE, cpu_offloading=True, **_FINE, offload_modules=_some(_OFFLOADS)),
        any_of(
            made(_ONE, **_FINE, offload_modules=_some(_OFFLOADS)),
            made(_ONE, cpu_offloading=True, offload_modules=_some(_OFFLOADS)),
        ),
    ),
    Family(
        "offload-modules",
        any_of(
            made(**_FINE),
            made(**_FINE, offload_modules=_some(_OFFLOADS, "mlp")),
            made(**_FINE, offload_modules=_some(_OFFLOADS, "layernorm")),
        ),
        made(**_FINE, offload_modules=_some(_OFFLOADS)),
    ),
    Family(
        "offload-attn-proj",
        made(**_FINE, offload_modules=_some(_OFFLOADS[1:], "attn_proj", least=0)),
        any_of(
            made(
                **_FINE, offload_modules=_some(_OFFLOADS[1:], "core_attn", "attn_proj")
            ),
            made(offload_modules=["attn_proj"]),
        ),
    ),
]
FAMILIES = [*RECOMPUTE, *OFFLOAD]
