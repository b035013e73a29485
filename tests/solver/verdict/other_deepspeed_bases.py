"""Legal configurations of DeepSpeed, and changes of them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    Case = dict[str, Any]
    Change = Callable[[random.Random, Case], None]

_HALVES = ({}, {"bf16": {"enabled": True}}, {"fp16": {"enabled": True}})


def base(rng: random.Random, **wants: Any) -> Case:
    """Draw a legal configuration; ``wants`` fixes sizes, stage or precision."""
    sizes = {
        "pp": rng.choice((1, 1, 1, 2, 4)),
        "tp": rng.choice((1, 1, 1, 2, 3)),
        "sp": 1,
        "dp": rng.choice((1, 2, 3, 4, 6, 8)),
        "stage": rng.choice((0, 1, 2, 3)),
        "half": rng.choice((0, 1, 2)),
        "micro": rng.choice((1, 2, 3, 4)),
        "steps": rng.choice((1, 2, 4, 5)),
        "experts": 0,
        "optimizer": rng.choice(("adamw", "adamw", "adagrad")),
    } | wants
    if "pp" not in wants and sizes["stage"] > 1 and "stage" in wants:
        sizes["pp"] = 1
    if sizes["pp"] > 1 and "stage" not in wants:
        sizes["stage"] %= 2
    if sizes["sp"] > 1:
        sizes |= {"tp": 1, "pp": 1}
    dp, heads = sizes["dp"], 12 * rng.choice((2, 4))
    config = {
        "train_batch_size": sizes["micro"] * sizes["steps"] * dp,
        "train_micro_batch_size_per_gpu": sizes["micro"],
        "gradient_accumulation_steps": sizes["steps"],
        "zero_optimization": {"stage": sizes["stage"]},
        **copy.deepcopy(_HALVES[sizes["half"]]),
    }
    if sizes["sp"] > 1:
        config |= {"sequence_parallel_size": sizes["sp"], "data_parallel_size": dp}
    return {
        **{name: sizes[name] for name in ("tp", "pp", "sp", "dp", "experts")},
        "world": sizes["tp"] * sizes["pp"] * sizes["sp"] * dp,
        "layers": sizes["pp"] * rng.choice((1, 2, 3)),
        "heads": heads,
        "kv_heads": rng.choice((1, 12, heads)) if sizes["sp"] > 1 else heads,
        "optimizer": sizes["optimizer"],
        "seq": sizes["sp"] * rng.choice((128, 171, 512, 1000)),
        "config": config,
    }


def made(change: Change | None = None, **wants: Any) -> Callable[[random.Random], Case]:
    """Return a maker: a legal base, and a change; a tuple among wants is a choice."""

    def make(rng: random.Random) -> Case:
        chosen = {
            name: rng.choice(value) if isinstance(value, tuple) else value
            for name, value in wants.items()
        }
        case = base(rng, **chosen)
        if change is not None:
            change(rng, case)
        return case

    return make


def put(**values: Any) -> Change:
    """Return a change of keys; ``a__b`` is b in section a, a tuple is a choice."""

    def change(rng: random.Random, case: Case) -> None:
        for path, value in values.items():
            place = case["config"]
            *sections, name = path.split("__")
            for section in sections:
                place = place.setdefault(section, {})
            chosen = rng.choice(value) if isinstance(value, tuple) else value
            place[name] = copy.deepcopy(chosen)

    return change


def then(*changes: Change) -> Change:
    """Return a change that makes several, in order."""

    def change(rng: random.Random, case: Case) -> None:
        for one in changes:
            one(rng, case)

    return change


def on_case(**values: Any) -> Change:
    """Return a change of what is beside the keys."""

    def change(rng: random.Random, case: Case) -> None:
        for name, value in values.items():
            case[name] = rng.choice(value) if isinstance(value, tuple) else value

    return change


def batch_of(rng: random.Random, case: Case) -> None:
    """Change one of the three sizes of a batch."""
    config = case["config"]
    name = rng.choice(
        (
            "train_batch_size",
            "train_micro_batch_size_per_gpu",
            "gradient_accumulation_steps",
        )
    )
    config[name] += rng.choice((-1, 1, 2, 3))
    if config[name] == 0 and name != "train_batch_size":
        config[name] = 7


def two_of_three(rng: random.Random, case: Case) -> None:
    """Leave one of the three sizes of a batch out."""
    del case["config"][
        rng.choice(
            (
                "train_batch_size",
                "train_micro_batch_size_per_gpu",
                "gradient_accumulation_steps",
            )
        )
    ]


def world_of(rng: random.Random, case: Case) -> None:
    """Add ranks to every stage that belong to no replica."""
    case["world"] += case["pp"] * rng.randrange(1, case["tp"])


def experts_of(fits: bool, *, world: bool) -> Change:
    """Choose a size of expert parallelism by what it divides."""

    def change(rng: random.Random, case: Case) -> None:
        stage = case["world"] // case["pp"]
        inside = [n for n in range(2, 13) if stage % n == 0]
        outside = [n for n in range(2, 13) if stage % n]
        size = rng.choice(inside if fits or not world else outside)
        case["experts"] = size * rng.choice((1, 2, 4))
        if not fits and not world:
            case["experts"] = rng.choice([n for n in range(1, 40) if n % size])
        section = {"enabled": True, "autoep_size": size}
        case["config"]["expert_parallel"] = section

    return change


def heads_of(fits: bool) -> Change:
    """Choose heads by whether they divide over the sequence ranks."""

    def change(rng: random.Random, case: Case) -> None:
        sp = case["sp"]
        kv = [n for n in range(1, 13) if (n % sp == 0 or sp % n == 0) == fits]
        case["kv_heads"] = rng.choice(kv or [sp])
        case["heads"] = sp * rng.choice((1, 2, 3, 4))
        if not fits and (not kv or rng.random() < 0.5):
            case["kv_heads"] = rng.choice((1, sp))
            case["heads"] = sp * rng.choice((1, 2, 3)) + rng.randrange(1, sp)

    return change


def not_alone(rng: random.Random, case: Case) -> None:
    """Cut the sequence besides tensors or layers."""
    more = {"sequence_parallel_size": 2, "data_parallel_size": case["dp"]}
    case["config"] |= more
    case["world"] *= 2
    case["seq"] *= 2
    case["sp"] = 2


def hpz_of(fits: bool) -> Change:
    """Choose a secondary partition by whether it divides the world."""

    def change(rng: random.Random, case: Case) -> None:
        world = case["world"]
        sizes = [n for n in range(2, world) if (world % n == 0) == fits]
        sizes += [0, 1, world, world + 1, 4 * world] if fits else [-1]
        case["config"]["zero_optimization"]["zero_hpz_partition_size"] = rng.choice(
            sizes
        )

    return change


def length_of(fits: bool) -> Change:
    """Choose a length by whether the sequence ranks divide it."""

    def change(rng: random.Random, case: Case) -> None:
        whole = case["sp"] * rng.randrange(100, 1000)
        case["seq"] = whole if fits else whole + rng.randrange(1, case["sp"])

    return change


CPU = {"device": "cpu"}
UNFORCED = {"zero_force_ds_cpu_optimizer": False}
MIXED = {"data_types__grad_accum_dtype": "fp32"}
