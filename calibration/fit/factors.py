"""Factors of a layer: the generation's priors, and what its kernels add.

The efficiency of dense bf16 products stays the prior's: tables are timed in short
bursts of inference kernels, and whole steps were predicted better without them. Number
formats and attention kernels for which there is no prior get the law that fits the
tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...models.profiles.layer import Layer
    from ...models.profiles.surfaces import Kernel
    from ...models.profiles.surfaces.law import Floats

_BURSTS = "fitted to kernel tables, see provenance; short bursts, before clocks fall"
#: Sides and tokens at which the two factors of a product's law are read off.
_LARGE, _SMALL = 16384.0, 1024.0
#: Sequence lengths at which those of attention are read off.
_LONG, _SHORT = 16384.0, 4096.0


def fitted_factors(
    prior: Layer, kernels: Mapping[str, Kernel]
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the factors of a layer and their sources."""
    factors, sources = dict(prior.factors), dict(prior.sources)
    found: dict[str, float] = {}
    for name, kernel in kernels.items():
        words = name.split(".")
        if words[0] == "gemm" and f"{name}.ceiling" not in factors:
            found |= _product(name, kernel, factors["gemm.bf16.grouped"])
        if name.startswith("attention.") and name.endswith(".bf16.d128"):
            ratio = factors["attention.backward"] / factors["attention.forward"]
            found |= _attention(f"attention.{words[1]}", kernel, ratio)
    factors |= found
    sources |= dict.fromkeys(found, _BURSTS)
    return factors, sources


def _product(name: str, kernel: Kernel, grouped: float) -> dict[str, float]:
    """Solve ceiling * (x / (x + c))^2 for two cubes."""
    sides = np.array([_LARGE, _SMALL])
    time = kernel.seconds(m=sides, n=sides, k=sides, beyond=True)
    ceiling, saturation = _two(
        np.sqrt(2 * sides**3 / time / kernel.machine.flops), sides
    )
    return {
        f"{name}.ceiling": round(min(ceiling**2, 1.0), 4),
        f"{name}.saturation": round(saturation, 1),
        f"{name}.grouped": grouped,
    }


def _attention(name: str, kernel: Kernel, ratio: float) -> dict[str, float]:
    """Solve forward * s / (s + c) for two sequence lengths of 32 heads."""
    seq = np.array([_LONG, _SHORT])
    time = kernel.seconds(seq=seq, batch=1, heads=32, group=4, beyond=True)
    flops = 2.0 * 32 * seq**2 / 2 * 256
    forward, saturation = _two(flops / time / kernel.machine.flops, seq)
    forward = min(forward, 1.0)
    return {
        f"{name}.forward": round(forward, 4),
        f"{name}.backward": round(forward * ratio, 4),
        f"{name}.saturation": round(saturation, 1),
    }


def _two(reached: Floats, sizes: Floats) -> tuple[float, float]:
    """Solve x * s / (s + c) through two points; c is at least 0."""
    (high, low), (long, short) = reached, sizes
    # high = x long / (long + c) and low = x short / (short + c)
    slope = (1 / low - 1 / high) / (1 / short - 1 / long)
    saturation = max(slope / max(1 / high - slope / long, 1e-9), 0.0)
    return float(high * (long + saturation) / long), float(saturation)
