"""Law of fused causal attention over ``batch`` sequences of ``seq`` tokens.

Half of the pairs of a query and a key are computed. A block handles 128 or 256
queries of one head; blocks fill the units in waves. ``products`` counts the matrix
products over the pairs in units of the forward's two: 1 forward, 2.5 backward (Dao
2023, FlashAttention-2, algorithm 2).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .law import Floats, Law, Machine, Parameter, either

if TYPE_CHECKING:
    from collections.abc import Mapping


#: Width of heads that the ceiling is of.
_WIDTH = 128.0


def _seconds(
    queries: float, p: Floats, z: Mapping[str, Floats], machine: Machine
) -> Floats:
    ceiling, saturation, memory, start, rounding, sharpness, width = p
    batch, seq, heads = z["batch"], z["seq"], z["heads"]
    wide = z["query_dim"] + z["value_dim"]
    pairs = batch * heads * seq * (seq + 1) / 2
    flops = 2.0 * pairs * wide * z["products"]
    waves = batch * heads * np.ceil(seq / queries) / machine.units
    idle = (np.ceil(waves) / waves) ** rounding
    reached = machine.flops * ceiling * (_WIDTH / z["query_dim"]) ** width
    compute = flops / reached * idle * (seq + saturation) / seq
    ends = batch * seq * wide * heads * (1 + 1 / z["group"]) * machine.width
    traffic = ends * z["products"] / (machine.bandwidth * memory)
    return np.asarray(either(compute, traffic, 1 + sharpness) + start)


def _coordinates(z: Mapping[str, Floats]) -> dict[str, Floats]:
    return {name: z[name] for name in ("seq", "batch", "heads", "group")}


def _law(name: str, queries: float) -> Law:
    return Law(
        name=name,
        sizes=(
            *("batch", "seq", "heads", "group"),
            *("query_dim", "value_dim", "products"),
        ),
        parameters=(
            Parameter(name="ceiling", prior=0.6, spread=0.3, most=1.2),
            Parameter(name="saturation", prior=512.0, spread=1.0),
            Parameter(name="memory", prior=0.8, spread=0.3, most=1.2),
            Parameter(name="start", prior=8e-6, spread=0.7),
            Parameter(name="rounding", prior=0.4, spread=1.0, most=1.0),
            Parameter(name="sharpness", prior=1.0, spread=0.7),
            Parameter(name="width", prior=0.2, spread=1.0),
        ),
        seconds=partial(_seconds, queries),
        coordinates=_coordinates,
        rising=("seq",),
    )


FLASH = _law("attention-flash", 128.0)
#: Two blocks share their queries, as on Blackwell.
FLASH_WIDE = _law("attention-flash-wide", 256.0)
