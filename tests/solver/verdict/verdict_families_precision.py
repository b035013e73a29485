"""Families of the rules of number formats."""

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


PRECISION = [
    Family("fp8-fp4", made(**_FP8, fp4=True), any_of(made(**_FP8), made(fp4=True))),
    Family(
        "fp8-param", made(fp8_param_gather=True), made(**_FP8, fp8_param_gather=True)
    ),
    Family(
        "fp8-param-sharding",
        made(**_FP8, fp8_param_gather=True, use_distributed_optimizer=False),
        any_of(
            made(**_FP8, fp8_param_gather=True),
            made(**_FP8, use_distributed_optimizer=False),
        ),
    ),
    Family(
        "fp8-ends",
        made(**_FP8, first_last_layers_bf16=True, then=_ends(False)),
        any_of(
            made(**_FP8, first_last_layers_bf16=True, then=_ends(True)),
            made(first_last_layers_bf16=True, then=_ends(False)),
            made(**_FP8, then=_ends(False)),
        ),
    ),
    Family(
        "fp8-ends-delayed",
        made(**_DELAYED, first_last_layers_bf16=True),
        any_of(
            made(**_FP8, first_last_layers_bf16=True),
            made(**_DELAYED),
            made(first_last_layers_bf16=True),
        ),
    ),
    Family(
        "fp8-custom",
        made(fp8=("hybrid", "e4m3"), fp8_recipe="custom"),
        any_of(made(fp8_recipe="custom"), made(**_FP8)),
    ),
]
FAMILIES = PRECISION
