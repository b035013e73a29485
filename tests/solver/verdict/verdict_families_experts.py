"""Families of the rules of experts and of context parallelism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verdict_bases import Case, divisors, groups_of
from verdict_makers import Family, any_of, made

if TYPE_CHECKING:
    import random

MOE, DENSE = groups_of(moe=True), groups_of(moe=False)
SHARED = groups_of(shared=True)
_PLAIN_MOE = ("moe-32", "moe-48", "moe-every-2")
_SOFTMAX = ("moe-32", "moe-48", "moe-every-2", "moe-shared-27")
_GRID = {"arch": MOE, "ep": (2, 4, 6)}


def _levels(fits: bool) -> Any:
    def then(rng: random.Random, case: Case) -> None:
        cp = case["config"]["cp"]
        first = rng.choice(divisors(cp))
        second = cp // first if fits else cp // first + rng.randrange(1, 4)
        case["config"] |= {
            "hierarchical_context_parallel_sizes": [first, second],
            "cp_comm_type": rng.choice(("a2a+p2p", "p2p")),
        }

    return then


def _styles(fits: bool) -> Any:
    def then(rng: random.Random, case: Case) -> None:
        layers = case["arch"]["num_layers"]
        number = layers if fits else rng.choice((1, 3, layers - 1, layers + 1))
        case["config"]["cp_comm_type"] = [
            rng.choice(("p2p", "a2a", "allgather")) for _ in range(number)
        ]

    return then


def _pattern(fits: bool) -> Any:
    def then(rng: random.Random, case: Case) -> None:
        layers = case["arch"]["num_layers"]
        number = layers if fits else layers + rng.choice((-8, -1, 1, 5))
        case["arch"]["moe_layer_freq"] = [1] + [
            rng.randrange(2) for _ in range(number - 1)
        ]

    return then


def _groups(fits: bool) -> Any:
    def then(rng: random.Random, case: Case) -> None:
        arch = case["arch"]
        experts = arch["num_moe_experts"]
        whole = [d for d in divisors(experts) if d > 1]
        groups, taken = rng.choice(whole), 1
        if fits:
            taken = rng.randrange(1, groups + 1)
        else:
            kind = rng.randrange(3)
            if kind == 0:
                taken = groups + rng.randrange(1, 4)
            elif kind == 1:
                groups = rng.choice([g for g in range(2, 20) if experts % g])
            else:
                groups = None
        arch |= {"moe_router_num_groups": groups, "moe_router_group_topk": taken}

    return then


FAMILIES = [
    Family(
        "cp-levels",
        made({"cp": (2, 3, 4)}, then=_levels(False)),
        made({"cp": (2, 3, 4)}, then=_levels(True)),
    ),
    Family(
        "cp-hierarchy",
        made({"cp": (1, 2, 4)}, cp_comm_type="a2a+p2p"),
        any_of(
            made({"cp": (2, 3, 4)}, then=_levels(True)),
            made({"cp": (2, 3, 4)}, cp_comm_type=("p2p", "allgather")),
        ),
    ),
    Family(
        "cp-list",
        made({"cp": (2, 3, 4)}, then=_styles(False)),
        any_of(
            made({"cp": (2, 3, 4)}, then=_styles(True)),
            made({"cp": 1}, then=_styles(False)),
        ),
    ),
    Family(
        "expert-width",
        made({"arch": DENSE}, arch={"force_moe_ffn": (512, 1408, 4096)}),
        any_of(made({"arch": DENSE}), made({"arch": MOE})),
    ),
    Family(
        "expert-pattern",
        made({"arch": _PLAIN_MOE}, then=_pattern(False)),
        made({"arch": _PLAIN_MOE}, then=_pattern(True)),
    ),
    Family(
        "shared-width",
        any_of(
            made(
                {"arch": (*SHARED, "moe-32", "moe-48")},
                arch={"moe_shared_expert_intermediate_size": 0},
            ),
            made(
                {"arch": groups_of(moe=False, bias=False)},
                arch={"moe_shared_expert_intermediate_size": 0},
            ),
        ),
        any_of(
            made({"arch": SHARED}),
            made(
                {"arch": ("moe-32", "moe-48"), "tp": (1, 2, 4)},
                arch={"moe_shared_expert_intermediate_size": (64, 2048)},
            ),
        ),
    ),
    Family(
        "router-groups",
        made({"arch": _PLAIN_MOE}, then=_groups(False)),
        made({"arch": _PLAIN_MOE}, then=_groups(True)),
    ),
    Family(
        "router-top1",
        made({"arch": _SOFTMAX}, arch={"moe_router_topk": 1}),
        any_of(
            made(
                {"arch": _SOFTMAX},
                arch={"moe_router_topk": 1, "moe_router_pre_softmax": True},
            ),
            made(
                {"arch": _SOFTMAX},
                arch={"moe_router_topk": 1, "moe_router_score_function": "sigmoid"},
            ),
            made(
                {"arch": _SOFTMAX},
                arch={
                    "moe_router_topk": 1,
                    "moe_router_load_balancing_type": "sinkhorn",
                },
            ),
            made({"arch": _SOFTMAX}, arch={"moe_router_topk": 2}),
        ),
    ),
    Family(
        "router-bias",
        made({"arch": _SOFTMAX}, arch={"moe_router_enable_expert_bias": True}),
        any_of(
            made(
                {"arch": _SOFTMAX},
                arch={
                    "moe_router_enable_expert_bias": True,
                    "moe_router_score_function": "sigmoid",
                },
            ),
            made({"arch": _SOFTMAX}, arch={"moe_router_score_function": "sigmoid"}),
        ),
    ),
    Family(
        "capacity",
        made(
            {"arch": _SOFTMAX},
            moe_expert_capacity_factor=(1.0, 1.5, 2.0, -1.0),
            arch={"moe_router_load_balancing_type": "sinkhorn"},
        ),
        any_of(
            made(
                {"arch": _SOFTMAX},
                moe_expert_capacity_factor=(1.0, 1.5, 2.0),
                arch={
                    "moe_router_load_balancing_type": (
                        "aux_loss",
                        "seq_aux_loss",
                        "global_aux_loss",
                        "none",
                    )
                },
            ),
            made(
                {"arch": _SOFTMAX}, arch={"moe_router_load_balancing_type": "sinkhorn"}
            ),
        ),
    ),
    Family(
        "capacity-padding",
        made(
            {"arch": MOE},
            moe_pad_expert_input_to_capacity=True,
            moe_expert_capacity_factor=(None, -1.0),
        ),
        made(
            {"arch": MOE},
            moe_pad_expert_input_to_capacity=True,
            moe_expert_capacity_factor=(0.0, 1.0, 1.25),
        ),
    ),
    Family(
        "mla-gqa",
        made({"arch": "latent-28"}, arch={"num_query_groups": 32}),
        made({"arch": "latent-28"}),
    ),
]
