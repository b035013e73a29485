"""Laws of communication: collectives of a scale-up domain and DeepEP's exchange.

``bytes`` is the whole buffer: what an all-gather ends with, a reduce-scatter starts
with, and what each rank of an all-to-all holds. A rank moves (g - 1) / g of it, an
all-reduce twice that (``rounds`` 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .law import Floats, Law, Machine, Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Ranks of a node that DeepEP's tables were measured with.
_NODE = 8.0


def _collective(p: Floats, z: Mapping[str, Floats], machine: Machine) -> Floats:
    efficiency, launch, hop, ramp = p
    ranks = z["ranks"]
    moved = z["bytes"] * (ranks - 1) / ranks * z["rounds"]
    # Small buffers are moved in pieces too small to fill the links.
    filled = (moved + ramp * np.sqrt(moved * 1e6)) / (machine.bandwidth * efficiency)
    time: Floats = launch + hop * (ranks - 1) + filled
    return time


def _copies(z: Mapping[str, Floats], places: Floats) -> Floats:
    """Distinct places among ``topk`` uniform choices."""
    copies: Floats = places * -np.expm1(z["topk"] * np.log1p(-1 / places))
    return copies


def _exchange(p: Floats, z: Mapping[str, Floats], machine: Machine) -> Floats:
    efficiency, start, unit, network, hop = p
    token = z["tokens"] * z["hidden"] * 2.0
    ranks = _NODE * z["nodes"]
    inside = token * _copies(z, ranks) / z["nodes"]
    lanes = np.minimum(z["sms"] * unit, machine.bandwidth * efficiency)
    nodes = np.maximum(z["nodes"], 1 + 1e-9)
    away = token * (_copies(z, nodes) - 1).clip(0)
    time: Floats = start + hop * (z["nodes"] - 1) + inside / lanes + away / network
    return time


def _ring(z: Mapping[str, Floats]) -> dict[str, Floats]:
    return {"bytes": z["bytes"], "ranks": z["ranks"]}


def _inside(z: Mapping[str, Floats]) -> dict[str, Floats]:
    return {
        "tokens": z["tokens"],
        "hidden": z["hidden"],
        "copies": _copies(z, np.full_like(z["topk"], _NODE)),
        "sms": z["sms"],
    }


def _between(z: Mapping[str, Floats]) -> dict[str, Floats]:
    return {"tokens": z["tokens"], "nodes": z["nodes"], "sms": z["sms"]}


COLLECTIVE = Law(
    name="collective",
    sizes=("bytes", "ranks", "rounds"),
    parameters=(
        Parameter(name="efficiency", prior=0.8, spread=0.3, most=1.2),
        Parameter(name="launch", prior=8e-6, spread=0.7),
        Parameter(name="hop", prior=1e-6, spread=0.7),
        Parameter(name="ramp", prior=1.0, spread=1.0),
    ),
    seconds=_collective,
    coordinates=_ring,
    rising=("bytes",),
)
_EXCHANGE = (
    Parameter(name="efficiency", prior=0.7, spread=0.3, most=1.2),
    Parameter(name="start", prior=3e-5, spread=0.5),
    Parameter(name="unit", prior=8e9, spread=0.7),
    Parameter(name="network", prior=45e9, spread=0.4),
    Parameter(name="hop", prior=1e-5, spread=1.0),
)
_EXCHANGE_SIZES = ("tokens", "hidden", "topk", "nodes", "sms")
EXCHANGE = Law(
    name="exchange",
    sizes=_EXCHANGE_SIZES,
    parameters=_EXCHANGE,
    seconds=_exchange,
    coordinates=_inside,
)
EXCHANGE_BETWEEN = Law(
    name="exchange-between",
    sizes=_EXCHANGE_SIZES,
    parameters=_EXCHANGE,
    seconds=_exchange,
    coordinates=_between,
    rising=("tokens",),
)
