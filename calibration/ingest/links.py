"""Tables of collectives (NCCL) and of DeepEP's exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..rows import Rows
from .products import sound
from .rules import Drops, check_units

if TYPE_CHECKING:
    from .columns import Columns

#: Collectives by the spellings of NCCL's tools.
COLLECTIVES = {
    "all_reduce": "all_reduce",
    "allreduce": "all_reduce",
    "all_gather": "all_gather",
    "allgather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "all_to_all": "all_to_all",
    "sendrecv": "p2p",
}
#: Slowest and fastest link that a table of collectives may show, in bytes/s.
_LINK = (1e8, 2e12)


def rounds_of(collective: str) -> float:
    """Return how often a rank moves its share of the buffer."""
    return 2.0 if collective == "all_reduce" else 1.0


def nccl_rows(table: Columns, source: dict[str, Any], drops: Drops) -> list[Rows]:
    """Read a table of collectives: message_size in elements, latency in ms."""
    width = np.where(table.words("nccl_dtype") == "half", 2.0, 0.0)
    sizes = {
        "bytes": table.numbers("message_size") * 2.0,
        "ranks": table.numbers("num_gpus"),
    }
    seconds = table.numbers("latency") * 1e-3
    alive = sound(table, seconds, sizes, drops)
    alive = drops.keep(width > 0, "dtype", alive)
    names = np.array(
        [COLLECTIVES.get(name.lower(), "") for name in table.words("op_name")]
    )
    alive = drops.keep(names != "", "kind", alive)
    return [
        collective(name, table.device, sizes, seconds, source, table.where).at(mine)
        for name in sorted(set(names[alive]))
        if (mine := alive & (names == name)).any()
    ]


def collective(
    name: str,
    device: str,
    sizes: dict[str, Any],
    seconds: Any,
    source: dict[str, Any],
    where: str,
) -> Rows:
    """Return rows of one collective after a check of their unit."""
    large = sizes["bytes"] >= 2**26
    moved = sizes["bytes"] * (1 - 1 / np.maximum(sizes["ranks"], 1)) * rounds_of(name)
    ideal = moved / _LINK[1]
    if large.any():
        check_units(seconds, ideal, large & (seconds > 0), where)
    rounds = np.full(len(seconds), rounds_of(name))
    return Rows(
        kernel=f"collective.{name}",
        device=device,
        sizes={**sizes, "rounds": rounds},
        seconds=seconds,
        source=source,
    )


def exchange_rows(table: Columns, source: dict[str, Any], drops: Drops) -> list[Rows]:
    """Read a table of DeepEP's normal kernels: times in microseconds."""
    nodes = table.numbers("node_num")
    found = []
    for name in ("dispatch", "combine"):
        sizes = {
            "tokens": table.numbers("num_token"),
            "hidden": table.numbers("hidden_size"),
            "topk": table.numbers("num_topk"),
            "nodes": nodes,
            "sms": table.numbers(f"{name}_sms"),
        }
        seconds = table.numbers(f"{name}_transmit_us") + table.numbers(
            f"{name}_notify_us"
        )
        seconds = seconds * 1e-6
        alive = sound(table, seconds, sizes, drops)
        large = sizes["tokens"] >= 16384
        ideal = sizes["tokens"] * sizes["hidden"] * 2.0 / _LINK[1]
        check_units(seconds, ideal, large & alive, table.where)
        level = ".between" if nodes.max() > 1 else ""
        if not alive.any():
            continue
        found.append(
            Rows(
                kernel=f"exchange.{name}{level}",
                device=table.device,
                sizes=sizes,
                seconds=seconds,
                source=source,
            ).at(alive)
        )
    return found
