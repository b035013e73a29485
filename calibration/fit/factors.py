"""Factors of a layer: the generation's priors, and what its kernels add.

The efficiency of dense products stays the prior's: tables are timed in short bursts of
inference kernels, and whole steps were predicted better without them. Of attention,
kernels beside the device's own get a law of their own, by name.
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
#: Sequence lengths at which the two factors of attention are read off.
_LONG, _SHORT = 16384.0, 4096.0
#: Kernels whose tables have a name of their own in a profile.
_NAMED = ("fa3", "trtllm", "trtllm-mha")


def fitted_factors(
    prior: Layer, kernels: Mapping[str, Kernel]
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the factors of a layer and their sources."""
    factors, sources = dict(prior.factors), dict(prior.sources)
    found: dict[str, float] = {}
    for name in _NAMED:
        if kernel := kernels.get(f"attention.{name}.bf16.d128"):
            ratio = factors["attention.backward"] / factors["attention.forward"]
            found |= _attention(f"attention.{name}", kernel, ratio)
    return factors | found, sources | dict.fromkeys(found, _BURSTS)


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
