"""Rooflines: seconds of matrix products, attention and memory-bound passes.

Letters: t tokens, k and n the inner and outer width of a projection, s keys.
A kernel takes the longer of its FLOPs at the efficiency of the profile and its bytes
at the memory bandwidth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .formats import product_format
from .run import PLAIN
from .work import Floats, Work

if TYPE_CHECKING:
    from ..cluster import Device
    from ..profiles import Profile
    from .formats import ProductFormat
    from .run import Run

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
    run
        Recipe, attention kernel and workload.
    """

    def __init__(
        self,
        device: Device,
        profile: Profile,
        precision: str,
        gradient_bytes: int,
        run: Run = PLAIN,
    ) -> None:
        """Take the peaks."""
        self._peak = float(device.peak_flops[precision])
        self._hbm = float(device.hbm_bandwidth)
        self._stack = profile.stack
        self._own = product_format(device, profile, precision)
        self._chosen = product_format(device, profile, run.recipe or precision)
        fused = run.attention if run.attention in profile.attentions else ""
        self.unfused = run.attention == "unfused"
        self._attention = profile.attention_law(fused)
        self._memory = profile.memory
        self._gradient_bytes = gradient_bytes
        self._frozen = run.workload == "lora"

    def gemm(
        self, tokens: Value, k: Value, n: Value, *, in_recipe: bool = True
    ) -> Work:
        """Time a projection: forward, dgrad, and wgrad added to the main gradient.

        Each of the three does 2 t k n FLOPs, and their smallest side is the same, so
        that they share one efficiency. ``in_recipe`` is false for products that stay
        in the weights' own format: the head and the router.
        """
        return self._product(
            tokens, k, n, 1.0, self._chosen if in_recipe else self._own, "gemm"
        )

    def grouped_gemm(self, tokens: Value, k: Value, n: Value, groups: Value) -> Work:
        """Time one projection of ``groups`` experts with ``tokens`` tokens each."""
        return self._product(tokens, k, n, groups, self._chosen, "experts")

    def _product(
        self,
        tokens: Value,
        k: Value,
        n: Value,
        groups: Value,
        form: ProductFormat,
        part: str,
    ) -> Work:
        ceiling = form.ceiling * (form.grouped if part == "experts" else 1.0)
        least = np.minimum(np.minimum(tokens, k), n)
        c = form.saturation
        efficiency = ceiling * (least / (least + c)) * (tokens / (tokens + c))
        flops = groups * (2.0 * tokens * k * n)
        compute = flops / (form.peak * efficiency)
        bandwidth = self._hbm * self._memory.elementwise
        ends = groups * (tokens * (k + n)) * form.width
        weights = groups * (k * n)
        pass_ = np.maximum(compute, (ends + weights * form.width) / bandwidth)
        # The weight gradient is added to what earlier micro-batches left.
        added = ends + 2 * self._gradient_bytes * weights
        weight = np.maximum(compute, added / bandwidth)
        if self._frozen:
            weight = weight * 0.0
        found = Work({part: pass_}, {part: pass_ + weight}, weight)
        if form.width < WIDTH:
            found += self._cast(groups * tokens * k, groups * tokens * n)
        return found

    def _cast(self, inputs: Value, outputs: Value) -> Work:
        """Time quantizing a product's input, and the gradient of its output.

        Each number is read in 2 bytes and written twice in 1, once transposed for
        the weight gradient. Source: TransformerEngine's cast-transpose kernels.
        """
        share = self._stack.cast * 4.0
        return self.passes(share * inputs, share * outputs)

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
        law, rate = self._attention, self._peak * self._stack.attention
        filled = keys / (keys + law.saturation)
        forward = 2.0 * pairs * (query_dim + value_dim)
        backward = 2.0 * pairs * (3 * query_dim + 2 * value_dim)
        return Work(
            {"attention": np.asarray(forward / (rate * law.forward * filled))},
            {"attention": np.asarray(backward / (rate * law.backward * filled))},
        )

    def unfused_attention(
        self, pairs: Value, query_dim: Value, value_dim: Value
    ) -> Work:
        """Time attention that writes its scores, masked half included.

        Parameters
        ----------
        pairs
            Pairs of a query and a key, masked ones too, over all heads.
        query_dim, value_dim
            Channels of a head's queries and keys, and of its values.

        Notes
        -----
        Two batched products forward and four backward, whose inner side is a head,
        and passes over scores of 2 bytes: scale and mask, softmax, dropout, each a
        read and a write; a third more backward.
        """
        c = self._own.saturation / 4
        inner = np.minimum(query_dim, value_dim)
        rate = self._own.peak * self._own.ceiling * (inner / (inner + c))
        flops = 2.0 * pairs * (query_dim + value_dim)
        moved = self._stack.score_passes * WIDTH * pairs
        passes = self.passes(moved, moved * (4 / 3))
        return Work(
            {"attention": flops / rate + passes.forward_time},
            {"attention": 2 * flops / rate + passes.backward_time},
        )

    def passes(
        self, forward: Value, backward: Value, kind: str = "elementwise"
    ) -> Work:
        """Time memory-bound work that moves these bytes.

        ``kind`` is one of the profile's memory factors.
        """
        part = {"permute": "experts", "loss": "head"}.get(kind, "elementwise")
        bandwidth = self._hbm * getattr(self._memory, kind) * self._stack.passes
        return Work(
            {part: np.asarray(forward / bandwidth)},
            {part: np.asarray(backward / bandwidth)},
        )
