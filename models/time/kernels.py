"""Rooflines: seconds of matrix products, attention and memory-bound passes.

Letters: t tokens, k and n the inner and outer width of a projection, s keys.
A kernel takes the longer of its FLOPs at the efficiency of the profile and its bytes
at the memory bandwidth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .work import Floats, Work

if TYPE_CHECKING:
    from ..cluster import Device
    from ..profiles import Profile

Value = Floats | float

#: Bytes of one number of activations and weights.
WIDTH = 2


class Kernels:
    """Kernel times of a device under a profile.

    Parameters
    ----------
    device, profile
        Peaks, and how much of them is reached.
    precision
        Number format of the matrix products.
    gradient_bytes
        Bytes of one accumulated weight gradient.
    """

    def __init__(
        self, device: Device, profile: Profile, precision: str, gradient_bytes: int
    ) -> None:
        """Take the peaks."""
        self._peak = float(device.peak_flops[precision])
        self._hbm = float(device.hbm_bandwidth)
        self._law = profile.gemm_law(precision)
        self._attention = profile.attention
        self._memory = profile.memory
        self._gradient_bytes = gradient_bytes

    def gemm(self, tokens: Value, k: Value, n: Value) -> Work:
        """Time a projection: forward, dgrad, and wgrad added to the main gradient.

        Each of the three does 2 t k n FLOPs, and their smallest side is the same, so
        that they share one efficiency.
        """
        return self._product(tokens, k, n, 1.0, self._law.ceiling, "gemm")

    def grouped_gemm(self, tokens: Value, k: Value, n: Value, groups: Value) -> Work:
        """Time one projection of ``groups`` experts with ``tokens`` tokens each."""
        ceiling = self._law.ceiling * self._law.grouped
        return self._product(tokens, k, n, groups, ceiling, "experts")

    def _product(
        self,
        tokens: Value,
        k: Value,
        n: Value,
        groups: Value,
        ceiling: float,
        part: str,
    ) -> Work:
        least = np.minimum(np.minimum(tokens, k), n)
        c = self._law.saturation
        efficiency = ceiling * (least / (least + c)) * (tokens / (tokens + c))
        flops = groups * (2.0 * tokens * k * n)
        compute = flops / (self._peak * efficiency)
        bandwidth = self._hbm * self._memory.elementwise
        ends = groups * (tokens * (k + n)) * WIDTH
        weights = groups * (k * n)
        pass_ = np.maximum(compute, (ends + weights * WIDTH) / bandwidth)
        # The weight gradient is added to what earlier micro-batches left.
        added = ends + 2 * self._gradient_bytes * weights
        weight = np.maximum(compute, added / bandwidth)
        return Work({part: pass_}, {part: pass_ + weight}, weight)

    def attention(
        self, pairs: Value, keys: Value, query_dim: Value, value_dim: Value
    ) -> Work:
        """Time fused attention.

        Parameters
        ----------
        pairs
            Pairs of a query and a key that are not masked, over all heads.
        keys
            Keys that a query block sees, which fill the kernel.
        query_dim, value_dim
            Channels of a head's queries and keys, and of its values.

        Notes
        -----
        The forward has a product for the scores and one for the output. The backward
        recomputes the scores and has four more: two over the query channels and two
        over the value channels (Dao 2023, FlashAttention-2, algorithm 2).
        """
        law = self._attention
        filled = keys / (keys + law.saturation)
        forward = 2.0 * pairs * (query_dim + value_dim)
        backward = 2.0 * pairs * (3 * query_dim + 2 * value_dim)
        return Work(
            {"attention": np.asarray(forward / (self._peak * law.forward * filled))},
            {"attention": np.asarray(backward / (self._peak * law.backward * filled))},
        )

    def passes(
        self, forward: Value, backward: Value, kind: str = "elementwise"
    ) -> Work:
        """Time memory-bound work that moves these bytes.

        ``kind`` is one of the profile's memory factors.
        """
        part = {"permute": "experts", "loss": "head"}.get(kind, "elementwise")
        bandwidth = self._hbm * getattr(self._memory, kind)
        return Work(
            {part: np.asarray(forward / bandwidth)},
            {part: np.asarray(backward / bandwidth)},
        )
