"""Families of the rules of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verdict_bases import Case, data_parallel, divisors, groups_of, set_micro_batches
from verdict_makers import Family, any_of, made

if TYPE_CHECKING:
    import random

MOE, DENSE = groups_of(moe=True), groups_of(moe=False)
_ANY = DENSE + MOE


def _below_one(name: str, **wants: object) -> object:
    return made({name: 1, **wants}, **{name: 0})


def _world(rng: random.Random, case: Case) -> None:
    """Take a world that the dense grid does not divide, the expert grid does."""
    config = case["config"]
    unit, cp = config["tp"] * config["pp"], config["cp"]
    factor = rng.choice([n for n in range(cp + 1, 6 * cp) if n % cp])
    case["world"] = unit * factor
    set_micro_batches(case, rng.choice((1, 2, 4)))


def _experts_grid(divides: bool) -> object:
    def then(rng: random.Random, case: Case) -> None:
        config, experts = case["config"], case["arch"]["num_moe_experts"]
        etp = config["tp"] if config["etp"] is None else config["etp"]
        left = case["world"] // (etp * config["pp"])
        fits = [e for e in divisors(experts) if (left % e == 0) == divides]
        config["ep"] = rng.choice(fits or [1])

    return then


def _uneven_experts(rng: random.Random, case: Case) -> None:
    """Take an ep that the expert grid has room for and the experts do not divide by."""
    config, experts = case["config"], case["arch"]["num_moe_experts"]
    ep = rng.choice([e for e in (3, 4, 5, 6, 7, 8, 16) if experts % e])
    case["world"] *= ep
    config["ep"] = ep
    set_micro_batches(case, rng.choice((1, 2)))


def _instances(divides: bool) -> object:
    def then(rng: random.Random, case: Case) -> None:
        config = case["config"]
        etp = config["tp"] if config["etp"] is None else config["etp"]
        dense = data_parallel(case) * config["cp"]
        expert = case["world"] // (etp * config["ep"] * config["pp"])
        fits = [
            n for n in range(2, 13) if (dense % n == 0 and expert % n == 0) == divides
        ]
        config["num_distributed_optimizer_instances"] = rng.choice(fits or [1])

    return then


_NO_BIAS = groups_of(moe=True, bias=False)
_GRID = {"pp": (2, 3, 4), "cp": (2, 3), "dp": (2, 4)}
_SPREAD = {
    "arch": (*DENSE, *_NO_BIAS),
    "dp": 4,
    "cp": (1, 2),
    "ep": 1,
    "etp": None,
}
FAMILIES = [
    Family(
        "degrees",
        any_of(
            _below_one("tp", dp=2, arch=DENSE),
            _below_one("pp"),
            _below_one("cp"),
            made({"arch": MOE, "ep": 1}, ep=0),
            made({"arch": MOE, "etp": 1}, etp=0),
            made({"pp": 2, "m": 4}, vpp=0, overlap_p2p_comm=True),
        ),
        any_of(
            made({"tp": 1, "pp": 1, "cp": 1}),
            made({"arch": DENSE, "tp": 1, "etp": 1}),
            made({"arch": MOE, "ep": 1, "etp": 1}),
        ),
    ),
    Family(
        "world-dense",
        made({"cp": (2, 3, 4), "ep": 1, "etp": (None, 1)}, then=_world),
        made({"cp": (2, 3, 4)}),
    ),
    Family(
        "world-expert",
        made(
            {"arch": _NO_BIAS, "ep": 1, "etp": None, "cp": 1, "dp": (1, 3)},
            then=_experts_grid(False),
        ),
        made({"arch": MOE, "ep": 1, "dp": (2, 4, 6)}, then=_experts_grid(True)),
    ),
    Family(
        "rank-order",
        any_of(
            made({"cp": (2, 3)}, order=("tp-ep-dp-pp", "tp-dp-pp")),
            made({"tp": (2, 4)}, order=("cp-ep-dp-pp", "ep-dp-pp")),
            made({"dp": (2, 4)}, order="tp-cp-ep-pp"),
            made({"arch": MOE, "ep": (2, 4, 6)}, order="tp-cp-dp-pp"),
            made(order=("tp-cp-ep-dp-xp-pp", "tp-sp-cp-ep-dp-pp")),
        ),
        any_of(
            made({"cp": 1, "ep": 1}, order=("tp-dp-pp", "tp-ep-dp-pp", "dp-tp-pp")),
            made({"tp": 1, "etp": None}, order=("cp-ep-dp-pp", "ep-cp-dp-pp")),
            made(order=("cp-tp-ep-dp-pp", "dp-ep-cp-tp-pp", "ep-dp-tp-cp-pp")),
            made({"pp": 1, "cp": 1, "ep": 1}, order=("tp-cp-ep-dp", "tp-dp")),
        ),
    ),
    Family(
        "pp-shared",
        any_of(
            made({"arch": DENSE, **_GRID}, order="tp-cp-ep-pp-dp"),
            made({"arch": MOE, "etp": None, "ep": 1, **_GRID}, order="tp-pp-cp-ep-dp"),
            made({"arch": DENSE, **_GRID}, order=("pp-tp-cp-ep-dp", "tp-cp-pp-dp-ep")),
        ),
        any_of(
            made(
                {"arch": (*DENSE, *_NO_BIAS), "cp": 1, "ep": 1, "etp": None},
                order="tp-cp-ep-pp-dp",
            ),
            made({"pp": 1}, order=("tp-cp-ep-pp-dp", "pp-tp-cp-ep-dp")),
            made({"arch": DENSE, "cp": 1}, order=("pp-tp-cp-ep-dp", "tp-pp-cp-ep-dp")),
            made({"arch": DENSE, **_GRID}),
        ),
    ),
    Family(
        "ep-moe",
        made({"arch": DENSE, "dp": (2, 4)}, ep=2),
        any_of(
            made({"arch": DENSE, "dp": (2, 4)}, ep=1),
            made({"arch": DENSE, "dp": (2, 4), "tp": 1}, etp=2),
            made({"arch": MOE, "ep": 2}),
        ),
    ),
    Family(
        "experts-positive",
        made(
            {"arch": ("moe-32", "moe-48", "moe-shared-27"), "ep": 1},
            arch={"force_zero_experts": True},
        ),
        made(
            {"arch": ("moe-32", "moe-48", "moe-shared-27"), "ep": 1},
            arch={
                "num_moe_experts": 1,
                "moe_router_topk": 1,
                "moe_router_pre_softmax": True,
            },
        ),
    ),
    Family(
        "experts-ep",
        made({"arch": MOE, "ep": 1}, then=_uneven_experts),
        made({"arch": MOE, "ep": (2, 3, 4, 6, 8)}),
    ),
    Family(
        "instances",
        any_of(
            made(then=_instances(False)),
            made({"dp": (2, 4)}, num_distributed_optimizer_instances=0),
        ),
        made({"dp": (2, 4, 6), "cp": (1, 2, 3)}, then=_instances(True)),
    ),
    Family(
        "instances-sharding",
        made(
            _SPREAD,
            num_distributed_optimizer_instances=(2, 4),
            use_distributed_optimizer=False,
        ),
        any_of(
            made(
                _SPREAD,
                num_distributed_optimizer_instances=(2, 4),
            ),
            made(_SPREAD, use_distributed_optimizer=False),
        ),
    ),
]
