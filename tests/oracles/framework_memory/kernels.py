"""Kernels that keep other tensors on a CPU than on a GPU, with the GPU's tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function


class LayerNorm(Function):
    """``aten::native_layer_norm`` on CUDA: statistics are 32 bits wide there."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, eps: float) -> Any:
        shape = (*x.shape[:-1], 1)
        mean = torch.empty(shape, dtype=torch.float32, device=x.device)
        ctx.save_for_backward(x, weight, bias, mean, torch.empty_like(mean))
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, weight, bias, *_ = ctx.saved_tensors
        return (*(torch.empty_like(t) for t in (x, weight, bias)), None)


class RMSNorm(Function):
    """``aten::_fused_rms_norm`` on CUDA: one statistic of 32 bits a row."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, eps: float) -> Any:
        shape = (*x.shape[:-1], 1)
        scale = torch.empty(shape, dtype=torch.float32, device=x.device)
        ctx.save_for_backward(x, weight, scale)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, weight, _ = ctx.saved_tensors
        return torch.empty_like(x), torch.empty_like(weight), None


class FlashAttention(Function):
    """flash-attn: inputs, output, one statistic of 32 bits a row, random state."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any) -> Any:
        batch, heads, length, _ = q.shape
        # Laid out as sequence, batch, head: the permutation behind it is a view.
        out = q.new_empty(length, batch, heads, v.shape[-1]).permute(1, 2, 0, 3)
        rows = q.new_empty(batch, heads, length, dtype=torch.float32)
        ctx.save_for_backward(q, k, v, out, rows, q.new_empty(2, dtype=torch.int64))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return tuple(torch.empty_like(t) for t in ctx.saved_tensors[:3])


class Norm(torch.nn.Module):
    """The norm of local layers; Apex's fused one has the same parameters."""

    def __init__(
        self, config: Any, hidden_size: int, eps: float = 1e-5, **unused: object
    ) -> None:
        super().__init__()

        def parameter(value: float) -> Any:
            made = torch.full((hidden_size,), value, dtype=config.params_dtype)
            kept = torch.nn.Parameter(made)
            kept.sequence_parallel = config.sequence_parallel  # type: ignore[attr-defined]
            return kept

        self.weight = parameter(1.0)
        has_bias = config.normalization == "LayerNorm"
        self.bias = parameter(0.0) if has_bias else None
        self.eps = eps

    def forward(self, x: Any) -> Any:
        if self.bias is None:
            return RMSNorm.apply(x, self.weight, self.eps)
        return LayerNorm.apply(x, self.weight, self.bias, self.eps)


class FlashCore(torch.nn.Module):
    """flash-attn in the place of megatron-core's own unfused attention."""

    def __init__(self, config: Any, *args: object, **unused: object) -> None:
        super().__init__()
        self.config = config

    def forward(self, q: Any, k: Any, v: Any, *args: object, **unused: object) -> Any:
        out = FlashAttention.apply(*(t.permute(1, 2, 0, 3) for t in (q, k, v)))
        return out.permute(2, 0, 1, 3).reshape(out.shape[2], out.shape[0], -1)


def _dropout(
    x: Any, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    # On a CPU dropout multiplies by a mask as wide as the input; CUDA keeps one byte.
    if not training or p == 0:
        return x
    return torch.ops.aten.native_dropout(x, p, True)[0]


def install() -> None:
    """Replace torch's functions by the CUDA forms above."""
    functional = torch.nn.functional
    functional.dropout = _dropout
    torch.dropout = lambda x, p, train: _dropout(x, p, train)  # type: ignore[assignment]
    functional.layer_norm = lambda x, shape, weight=None, bias=None, eps=1e-5: (
        LayerNorm.apply(x, weight, bias, eps)
    )
    functional.rms_norm = lambda x, shape, weight=None, eps=None: RMSNorm.apply(
        x, weight, eps
    )
