"""Quantized tensors of TransformerEngine, allocated without its kernels.

A quantizer's own Python says which tensors the quantized form of a shape has
(``inner_tensor_specs``); the one with scales of earlier steps, which has no such
Python, has those of current scaling and its scale besides. Kernels that quantize
return such a form, or fill the one they are given.
"""

from __future__ import annotations

import functools
import importlib
import math
import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

_PYTORCH = "transformer_engine.pytorch"


def _module(name: str) -> Any:
    return importlib.import_module(f"{_PYTORCH}.{name}")


def _delayed(quantizer: Any, shape: tuple[int, ...], dtype: torch.dtype) -> Any:
    """Return the form with a scale of earlier steps: data, transpose, inverse."""
    float8 = _module("tensor.float8_tensor")
    storage = _module("tensor.storage.float8_tensor_storage")
    one_copy = _module("utils").is_non_tn_fp8_gemm_supported()
    turned = (shape[-1], *shape[:-1])
    both_ways = quantizer.columnwise_usage and not one_copy
    parts: dict[str, Any] = {
        "data": torch.empty(shape, dtype=torch.uint8)
        if quantizer.rowwise_usage or one_copy
        else None,
        "data_transpose": torch.empty(turned, dtype=torch.uint8) if both_ways else None,
        "fp8_scale_inv": torch.empty(1, dtype=torch.float32),
        "fp8_dtype": quantizer.dtype,
        "quantizer": quantizer,
        "requires_grad": False,
    }
    if quantizer.internal:
        return storage.Float8TensorStorage(fake_dtype=dtype, **parts)
    return float8.Float8Tensor(shape=shape, dtype=dtype, **parts)


def empty(quantizer: Any, shape: Any, dtype: torch.dtype, *_: Any) -> Any:
    """Return the quantized form of a tensor of a shape."""
    shape = tuple(int(size) for size in shape)
    if type(quantizer).__name__ == "Float8Quantizer":
        return _delayed(quantizer, shape, dtype)
    tensors = quantizer.alloc_tensors(shape, device=torch.device("cpu"))
    if type(quantizer).__name__ == "NVFP4Quantizer" and quantizer.columnwise_usage:
        # As its kernels' code does, which turns rows of all leading dimensions.
        turned = (shape[-1], math.prod(shape[:-1]) // 2)
        tensors["_columnwise_data"] = torch.empty(turned, dtype=torch.uint8)
    described = quantizer.create_metadata(shape, dtype=dtype)
    strides = torch.empty(shape, device="meta").stride()
    return described["cls"].__tensor_unflatten__(tensors, described, shape, strides)


def quantize(x: Any, quantizer: Any, out: Any = None, noop: Any = None) -> Any:
    """Return the quantized form of a tensor, or the one to be filled."""
    return empty(quantizer, x.shape, x.dtype) if out is None else out


def split_quantize(x: torch.Tensor, splits: Any, quantizers: Any, **_: Any) -> Any:
    """Return the quantized form of each part of a tensor's rows."""
    parts = torch.split(x, [int(size) for size in splits])
    return [quantize(part, q) for part, q in zip(parts, quantizers, strict=True)]


def transpose(data: torch.Tensor, dtype: Any, out: Any = None) -> Any:
    """Return the transpose of 8-bit numbers, or the tensor to be filled."""
    turned = (data.shape[-1], *data.shape[:-1])
    return data.new_empty(turned) if out is None else out


def swap_first_dims(x: torch.Tensor, out: Any = None) -> Any:
    """Return a tensor with its first two dimensions exchanged."""
    return x.transpose(0, 1).contiguous() if out is None else out


def normed(x: torch.Tensor, out: Any, quantizer: Any) -> Any:
    """Return the output of a norm that quantizes, or does not."""
    if out is not None:
        return out
    return torch.empty_like(x) if quantizer is None else quantize(x, quantizer)


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of a tensor or of a quantized form."""
    shape = getattr(x, "shape", None)
    return tuple(x.size() if shape is None else shape)


def install() -> None:
    """Answer what the formats in four bits ask of the device's numbers.

    The signs of their rotation, one number of 16 bits, are never kept.
    """
    _module("tensor.nvfp4_tensor").get_sign_from_vector = lambda vector: 1


def weight_copies(model: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of the quantized weights that modules hold beside their own."""
    for module in model.modules():
        for copy in getattr(module, "_fp8_workspaces", {}).values():
            for name in copy.__tensor_flatten__()[0]:
                yield getattr(copy, name)


def scaling_state(model: Any) -> Iterator[torch.Tensor]:
    """Yield scales and histories that modules hold for scaling by earlier steps."""
    for module in model.modules():
        meta = getattr(module, "fp8_meta", {})
        for key in ("scaling_fwd", "scaling_bwd"):
            for name in ("scale", "amax_history"):
                found = getattr(meta.get(key), name, None)
                if found is not None:
                    yield found


def forget() -> None:
    """Forget scales of earlier cases, and what was asked of another device."""
    if _PYTORCH not in sys.modules:
        return
    state = _module("quantization")
    for owner in (_module("utils"), state):
        for function in vars(owner).values():
            if isinstance(function, functools._lru_cache_wrapper):
                function.cache_clear()
    state.FP8GlobalStateManager.reset()
