"""Laws of a matrix product C[m, n] = A[m, k] B[k, n].

``smooth`` saturates with the smallest side; ``tiled`` counts the tiles of the best
of a few tile shapes. Both take the longer of compute and traffic and a start-up time.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .law import Floats, Law, Machine, Parameter, either

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Rows and columns of the output that one block of a kernel computes.
TILES = ((128, 256), (256, 128), (128, 128), (64, 256), (64, 128), (128, 64), (64, 64))
_WAVES = ((128, 256), (256, 128), (128, 128), (64, 256))
#: Rows that no vector of a kernel fills evenly are told apart by their number.
_ALIGNED, _ODD = 16.0, (128.0, 256.0, 512.0, 1024.0, 1e12)


def _traffic(z: Mapping[str, Floats], machine: Machine, fraction: float) -> Floats:
    m, n, k = z["m"], z["n"], z["k"]
    moved: Floats = (m * k + k * n) * machine.width + m * n * 2.0
    return np.asarray(moved / (machine.bandwidth * fraction))


def _smooth(p: Floats, z: Mapping[str, Floats], machine: Machine) -> Floats:
    ceiling, saturation, memory, start, sharpness = p
    m, n, k = z["m"], z["n"], z["k"]
    least = np.minimum(np.minimum(m, n), k)
    reached = ceiling * least / (least + saturation) * m / (m + saturation)
    compute = 2.0 * m * n * k / (machine.flops * reached)
    time = either(compute, _traffic(z, machine, memory), 1 + sharpness) + start
    return np.asarray(time)


def _tiled(p: Floats, z: Mapping[str, Floats], machine: Machine) -> Floats:
    ceiling, memory, start, prologue, rounding, small, sharpness, floor = p
    m, n, k = z["m"], z["n"], z["k"]
    best = np.full(np.broadcast_shapes(m.shape, n.shape), np.inf)
    for rows, columns in TILES:
        waves = np.ceil(m / rows) * np.ceil(n / columns) / machine.units
        smooth = (1 - rounding) * np.maximum(waves, floor)
        waves = smooth + rounding * np.ceil(waves)
        with np.errstate(over="ignore"):  # a fit may try a huge exponent
            slower = (rows * columns / 32768.0) ** -small
            np.minimum(best, waves * (rows * columns * slower), out=best)
    each = machine.flops * ceiling / machine.units
    compute = best * (2.0 * (k + prologue) / each)
    time = either(compute, _traffic(z, machine, memory), 1 + sharpness) + start
    return np.asarray(time)


def _steps(z: Mapping[str, Floats], machine: Machine) -> Floats:
    """Return covariates of what tiles add.

    Logarithm of rounded-up waves over ideal ones, for each large tile; then whether
    rows are not a multiple of 16, by their number.
    """
    m, n = z["m"], z["n"]
    found = []
    for rows, columns in _WAVES:
        waves = np.ceil(m / rows) * np.ceil(n / columns) / machine.units
        ideal = m * n / (rows * columns * machine.units)
        filled = waves > 1
        ratio = np.ceil(waves) / np.where(filled, ideal, 1.0)
        found.append(np.where(filled, np.log(ratio), 0.0))
    odd = m % _ALIGNED != 0
    for least, most in pairwise(_ODD):
        found.append(np.where(odd & (m >= least) & (m < most), 1.0, 0.0))
    return np.stack(found, axis=-1)


def _sides(z: Mapping[str, Floats]) -> dict[str, Floats]:
    return {"m": z["m"], "n": z["n"], "k": z["k"]}


_SHARPNESS = Parameter(name="sharpness", prior=2.0, spread=0.5)
_MEMORY = Parameter(name="memory", prior=0.8, spread=0.15, most=1.2)
_START = Parameter(name="start", prior=3e-6, spread=0.7)

SMOOTH = Law(
    name="gemm-smooth",
    sizes=("m", "n", "k"),
    parameters=(
        Parameter(name="ceiling", prior=0.75, spread=0.15, most=1.1),
        Parameter(name="saturation", prior=256.0, spread=0.7),
        _MEMORY,
        _START,
        _SHARPNESS,
    ),
    seconds=_smooth,
    coordinates=_sides,
)


def _tiled_law(name: str, rounding: Parameter) -> Law:
    return Law(
        name=name,
        sizes=("m", "n", "k"),
        parameters=(
            Parameter(name="ceiling", prior=0.8, spread=0.15, most=1.1),
            _MEMORY,
            _START,
            Parameter(name="prologue", prior=128.0, spread=0.7),
            rounding,
            Parameter(name="small", prior=0.3, spread=0.5),
            _SHARPNESS,
            Parameter(name="floor", prior=0.1, spread=1.0, most=1.0),
        ),
        seconds=_tiled,
        coordinates=_sides,
        steps=_steps,
        rising=("k",),
    )


TILED = _tiled_law(
    "gemm-tiled", Parameter(name="rounding", prior=0.3, spread=1.0, most=1.0)
)
#: Rounding to waves is strong; a surface evens out what it overdoes on average.
TILED_WAVES = _tiled_law(
    "gemm-tiled-waves",
    Parameter(name="rounding", prior=0.6, spread=0.1, most=0.7, least=0.5),
)
