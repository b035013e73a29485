"""Families of the rules of the dispatch of tokens."""

from __future__ import annotations

from verdict_bases import groups_of
from verdict_makers import Family, any_of, made

MOE, DENSE = groups_of(moe=True), groups_of(moe=False)
SHARED = groups_of(shared=True)
_PLAIN_MOE = ("moe-32", "moe-48", "moe-every-2")
_SOFTMAX = ("moe-32", "moe-48", "moe-every-2", "moe-shared-27")
_GRID = {"arch": MOE, "ep": (2, 4, 6)}
DENSE_PLAIN = groups_of(moe=False, bias=False)
_MLP = {"recompute_granularity": "selective", "recompute_modules": ["mlp"]}
_WITH_MLP = (["mlp"], ["core_attn", "mlp"], ["mlp", "layernorm"])
_BIAS = {"arch": "moe-bias-24", "dp": 4, "tp": (1, 2), "pp": (1, 2, 3, 4)}
FAMILIES = [
    Family(
        "dispatcher",
        made({"arch": MOE}, moe_token_dispatcher_type=("ring", "alltoall_seq", "")),
        any_of(
            made({"arch": MOE}, moe_token_dispatcher_type=("alltoall", "allgather")),
            made(_GRID, moe_token_dispatcher_type="flex"),
            made({"arch": DENSE}, moe_token_dispatcher_type="ring"),
        ),
    ),
    Family(
        "deepep",
        any_of(
            made(
                {"arch": MOE},
                moe_enable_deepep=True,
                moe_token_dispatcher_type=("alltoall", "allgather"),
            ),
            made(
                _GRID,
                moe_enable_deepep=True,
                moe_token_dispatcher_type="flex",
                moe_flex_dispatcher_backend="hybridep",
            ),
        ),
        any_of(
            made(_GRID, moe_enable_deepep=True, moe_token_dispatcher_type="flex"),
            made(
                _GRID,
                moe_token_dispatcher_type="flex",
                moe_flex_dispatcher_backend="hybridep",
            ),
        ),
    ),
    Family(
        "deepep-padding",
        made(
            _GRID,
            moe_enable_deepep=(True, False),
            moe_token_dispatcher_type="flex",
            moe_expert_capacity_factor=1.0,
            moe_pad_expert_input_to_capacity=True,
        ),
        any_of(
            made(
                _GRID,
                moe_token_dispatcher_type="flex",
                moe_flex_dispatcher_backend="hybridep",
                moe_expert_capacity_factor=1.0,
                moe_pad_expert_input_to_capacity=True,
            ),
            made(
                _GRID, moe_token_dispatcher_type="flex", moe_expert_capacity_factor=1.0
            ),
        ),
    ),
    Family(
        "deepep-group",
        any_of(
            made({"arch": MOE, "ep": 1, "etp": 1}, moe_token_dispatcher_type="flex"),
            made(
                {"arch": MOE, "ep": 1, "tp": 1, "etp": None},
                moe_token_dispatcher_type="flex",
            ),
        ),
        any_of(
            made(_GRID, moe_token_dispatcher_type="flex"),
            made(
                {"arch": _SOFTMAX, "ep": 1, "tp": 2, "etp": None},
                moe_token_dispatcher_type="flex",
            ),
        ),
    ),
    Family(
        "flex-backend",
        made(
            _GRID,
            moe_token_dispatcher_type="flex",
            moe_flex_dispatcher_backend=("nccl", "nvshmem", ""),
        ),
        any_of(
            made(
                _GRID,
                moe_token_dispatcher_type="flex",
                moe_flex_dispatcher_backend=("deepep", "hybridep"),
            ),
            made(_GRID, moe_flex_dispatcher_backend="nccl"),
        ),
    ),
    Family(
        "shared-overlap",
        any_of(
            made(
                {"arch": SHARED},
                moe_shared_expert_overlap=True,
                moe_token_dispatcher_type="allgather",
            ),
            made(
                {"arch": SHARED, "ep": (2, 4)},
                moe_shared_expert_overlap=True,
                moe_token_dispatcher_type="flex",
            ),
        ),
        any_of(
            made({"arch": SHARED}, moe_shared_expert_overlap=True),
            made(
                {"arch": _PLAIN_MOE},
                moe_shared_expert_overlap=True,
                moe_token_dispatcher_type="allgather",
            ),
        ),
    ),
    Family(
        "lengths-allgather",
        made(variable_seq_lengths=True, moe_token_dispatcher_type="allgather"),
        any_of(
            made(variable_seq_lengths=True), made(moe_token_dispatcher_type="allgather")
        ),
    ),
    Family(
        "router-padding",
        made(moe_router_padding_for_quantization=True),
        any_of(
            made(
                moe_router_padding_for_quantization=True,
                fp8=("hybrid", "e4m3"),
                fp8_recipe=("tensorwise", "delayed"),
            ),
            made(moe_router_padding_for_quantization=True, fp4=True),
        ),
    ),
    Family(
        "router-padding-dispatcher",
        made(
            moe_router_padding_for_quantization=True,
            fp8=("hybrid", "e4m3"),
            moe_token_dispatcher_type="allgather",
        ),
        any_of(
            made(moe_router_padding_for_quantization=True, fp8=("hybrid", "e4m3")),
            made(fp8=("hybrid", "e4m3"), moe_token_dispatcher_type="allgather"),
        ),
    ),
    Family(
        "etp-bias",
        any_of(
            made(
                {"arch": "moe-bias-24", "tp": (2, 4), "dp": (2, 4), "ep": 1},
                etp=(None, 2),
            ),
            made({"arch": "moe-bias-24", "tp": 1, "dp": (2, 4), "ep": 1}, etp=2),
        ),
        made({"arch": "moe-bias-24"}),
    ),
    Family(
        "shared-bias",
        made(
            {"arch": "moe-bias-24"},
            arch={"moe_shared_expert_intermediate_size": (2880, 1024)},
        ),
        any_of(made({"arch": "moe-bias-24"}), made({"arch": SHARED})),
    ),
    Family(
        "recompute-bias",
        made({"arch": "bias-24"}, **_MLP | {"recompute_modules": _WITH_MLP}),
        any_of(
            made({"arch": "bias-24"}, **_MLP | {"recompute_modules": ["core_attn"]}),
            made({"arch": DENSE_PLAIN}, **_MLP | {"recompute_modules": _WITH_MLP}),
            made({"arch": "moe-bias-24", "ep": (2, 4)}, **_MLP),
        ),
    ),
    Family(
        "bias-alone",
        made(_BIAS | {"ep": 1}),
        any_of(
            made(_BIAS | {"ep": (2, 4)}),
            made(_BIAS | {"ep": 4}, arch={"num_moe_experts": 4}),
        ),
    ),
]
