"""Laws of the experts' products.

``grouped-mlp`` is a whole gated network of experts on one rank: ``tokens`` arrive at
all ranks together, each wants ``topk`` of ``experts``, and a rank of ``ep`` holds
experts / ep of them, each of width ``inter`` after tensor parallelism. The kernel also
passes over the rows that other ranks' experts own. ``grouped-product`` is one product
of ``groups`` experts with ``m`` rows each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .law import Floats, Law, Machine, Parameter, either

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Least and greatest rows of a block; a kernel picks the power of two that fits.
_BLOCKS = (16.0, 128.0)


def _padded(rows: Floats) -> Floats:
    """Round rows of a group up to whole blocks."""
    block = np.clip(2.0 ** np.ceil(np.log2(np.maximum(rows, 1.0))), *_BLOCKS)
    padded: Floats = np.ceil(rows / block) * block
    return padded


def _mlp(p: Floats, z: Mapping[str, Floats], machine: Machine) -> Floats:
    ceiling, saturation, start, memory, sharpness, passes, few = p
    hidden, inter = z["hidden"], z["inter"]
    each = z["tokens"] * z["topk"] / z["experts"]
    local = z["experts"] / z["ep"]
    rows = each * local
    active = np.maximum(local * -np.expm1(-each), np.minimum(1.0, rows))
    filled = rows / active
    flops = 6.0 * _padded(filled) * active * hidden * inter
    least = np.minimum(hidden, inter)
    compute = flops / (machine.flops * ceiling) * (least + saturation) / least
    compute = compute * (filled + few) / filled
    weights = 3.0 * active * hidden * inter * machine.width
    ends = (2 * hidden + 3 * inter) * 2.0
    traffic = (weights + rows * ends) / (machine.bandwidth * memory)
    over = z["tokens"] * z["topk"] * ends / machine.bandwidth * passes
    return np.asarray(either(compute, traffic, 1 + sharpness) + start + over)


def _shares(z: Mapping[str, Floats]) -> dict[str, Floats]:
    return {
        "each": z["tokens"] * z["topk"] / z["experts"],
        "local": z["experts"] / z["ep"],
        "inter": z["inter"],
        "hidden": z["hidden"],
    }


def _by_tokens(z: Mapping[str, Floats]) -> dict[str, Floats]:
    found = _shares(z)
    del found["hidden"]
    return found | {"tokens": z["tokens"]}


def _product(p: Floats, z: Mapping[str, Floats], machine: Machine) -> Floats:
    ceiling, saturation, memory, group, sharpness = p
    m, n, k, groups = z["m"], z["n"], z["k"], z["groups"]
    least = np.minimum(np.minimum(m, n), k)
    reached = machine.flops * ceiling * least / (least + saturation)
    compute = 2.0 * groups * m * n * k / reached
    moved = groups * (m * (n + k) * machine.width + n * k * z["bytes"])
    traffic = moved / (machine.bandwidth * memory)
    return np.asarray(either(compute, traffic, 1 + sharpness) + groups * group)


def _sides(z: Mapping[str, Floats]) -> dict[str, Floats]:
    return {"m": z["m"], "n": z["n"], "k": z["k"]}


_CEILING = Parameter(name="ceiling", prior=0.6, spread=0.3, most=2.5)
_SHARPNESS = Parameter(name="sharpness", prior=1.0, spread=0.7)
_MLP = (
    _CEILING,
    Parameter(name="saturation", prior=200.0, spread=1.0),
    Parameter(name="start", prior=2e-5, spread=0.7),
    Parameter(name="memory", prior=0.7, spread=0.3, most=1.2),
    _SHARPNESS,
    Parameter(name="passes", prior=1.0, spread=1.0),
    Parameter(name="few", prior=32.0, spread=1.0),
)
_MLP_SIZES = ("tokens", "topk", "experts", "ep", "hidden", "inter")
MLP = Law(
    name="grouped-mlp",
    sizes=_MLP_SIZES,
    parameters=_MLP,
    seconds=_mlp,
    coordinates=_shares,
)
MLP_BY_TOKENS = Law(
    name="grouped-mlp-by-tokens",
    sizes=_MLP_SIZES,
    parameters=_MLP,
    seconds=_mlp,
    coordinates=_by_tokens,
)
PRODUCT = Law(
    name="grouped-product",
    sizes=("groups", "m", "n", "k", "bytes"),
    parameters=(
        _CEILING,
        Parameter(name="saturation", prior=200.0, spread=1.0),
        Parameter(name="memory", prior=0.7, spread=0.3, most=1.2),
        Parameter(name="group", prior=1e-6, spread=1.0),
        _SHARPNESS,
    ),
    seconds=_product,
    coordinates=_sides,
)
