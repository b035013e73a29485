"""Legal configurations of Accelerate, and changes of them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    Case = dict[str, Any]
    Change = Callable[[random.Random, Case], None]
    Maker = Callable[[random.Random], Case]


def base(rng: random.Random, launch: str = "", **sizes: int) -> Case:
    """Draw a legal configuration of a mesh, launched with FSDP2 unless told."""
    launch = launch or rng.choice(("fsdp2", "fsdp2", "fsdp2", "fsdp1", "ddp"))
    mesh = {
        "dp_replicate_size": rng.choice((1, 1, 2, 3)),
        "dp_shard_size": rng.choice((2, 3, 4, 8)),
        "tp_size": rng.choice((1, 1, 2, 4)),
        "cp_size": rng.choice((1, 1, 2, 4)) if launch == "fsdp2" else 1,
        **sizes,
    }
    world = mesh["dp_replicate_size"] * mesh["dp_shard_size"]
    world *= mesh["tp_size"] * mesh["cp_size"] * mesh.get("sp_size", 1)
    fsdp = None if launch == "ddp" else {"fsdp_version": int(launch[-1])}
    return {
        "world": world,
        "parallelism": None if launch == "fsdp1" else mesh,
        "fsdp": fsdp,
        "mixed_precision": rng.choice((None, "no", "fp16", "bf16")),
    }


def made(change: Change | None = None, launch: Any = "", **sizes: Any) -> Maker:
    """Return a maker: a legal base, and a change; a tuple is a choice."""

    def pick(rng: random.Random, value: Any) -> Any:
        return rng.choice(value) if isinstance(value, tuple) else value

    def make(rng: random.Random) -> Case:
        chosen = {name: pick(rng, value) for name, value in sizes.items()}
        case = base(rng, pick(rng, launch), **chosen)
        if change is not None:
            change(rng, case)
        return case

    return make


def _in(part: str, **values: Any) -> Change:
    """Return a change of fields of the mesh or the plugin; a tuple is a choice."""

    def change(rng: random.Random, case: Case) -> None:
        place = case[part]
        if place is None:
            place = case[part] = {}
        for name, value in values.items():
            chosen = rng.choice(value) if isinstance(value, tuple) else value
            place[name] = copy.deepcopy(chosen)

    return change


def mesh(**values: Any) -> Change:
    """Change fields of the mesh."""
    return _in("parallelism", **values)


def plugin(**values: Any) -> Change:
    """Change fields of the plugin of FSDP."""
    return _in("fsdp", **values)


def one(*changes: Change) -> Change:
    """Return a change that makes one of several."""
    return lambda rng, case: rng.choice(changes)(rng, case)


def world_of(rng: random.Random, case: Case) -> None:
    """Set a number of ranks that the mesh has not."""
    case["world"] = rng.choice([n for n in range(1, 70) if n != case["world"]])


def precision(*names: str | None) -> Change:
    """Return a change of the mixed precision."""

    def change(rng: random.Random, case: Case) -> None:
        case["mixed_precision"] = rng.choice(names)

    return change


def below_one(rng: random.Random, case: Case) -> None:
    """Set a size below one; the others leave one process."""
    name = rng.choice(("dp_replicate_size", "dp_shard_size", "tp_size", "cp_size"))
    case["parallelism"] = {name: rng.choice((0, -1, -4))}
