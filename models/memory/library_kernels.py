"""TransformerEngine's layers with unfused attention, which keeps the scores."""

from __future__ import annotations

from dataclasses import dataclass, fields

from .kernels import Kernels


@dataclass(frozen=True, kw_only=True)
class UnfusedKernels(Kernels):
    """Kernels whose attention is unfused whoever implements the layers.

    TransformerEngine's ``UnfusedDotProductAttention`` keeps what Megatron's own does:
    the softmax, and with dropout its result and mask.
    """

    @property
    def unfused_attention(self) -> bool:
        """Whether attention keeps its scores."""
        return True

    @staticmethod
    def of(kernels: Kernels) -> UnfusedKernels:
        """Return the same kernels with unfused attention."""
        values = {f.name: getattr(kernels, f.name) for f in fields(Kernels)}
        return UnfusedKernels(**{**values, "flash": False})
