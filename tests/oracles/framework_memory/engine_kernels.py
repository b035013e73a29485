"""TransformerEngine's compiled module: shapes of results, and names it must have.

Forward kernels that the emulated cases call are given here, with the shapes their
callers and cuDNN's documentation state; any other raises by name when called.
"""

from __future__ import annotations

import enum
import importlib
import importlib.machinery
import sys
import types
from typing import Any

import torch

from . import engine_formats as formats

_MODULE = types.ModuleType("transformer_engine_torch")
_TRITON_MODULES = (
    "",
    "runtime",
    "language",
    "language.core",
    "language.extra",
    "language.math",
    "language.standard",
)
_LOOKING_FOR_TRITON = (
    "_dynamo",
    "_functorch.aot_autograd",
    "_inductor.codecache",
    "_inductor.output_code",
    "_inductor.runtime.triton_compat",
)


class DType(enum.IntEnum):
    """Numbers of formats, as in ``transformer_engine.h``."""

    kByte = 0
    kInt32 = 2
    kFloat32 = 4
    kFloat16 = 5
    kBFloat16 = 6
    kFloat8E4M3 = 7
    kFloat8E5M2 = 8
    kFloat4E2M1 = 10


_FORMATS = {
    DType.kByte: torch.uint8,
    DType.kInt32: torch.int32,
    DType.kFloat32: torch.float32,
    DType.kFloat16: torch.float16,
    DType.kBFloat16: torch.bfloat16,
}


class AttentionBackend(enum.IntEnum):
    """cuDNN's attention, by its name in the compiled module."""

    NVTE_No_Backend = -1
    NVTE_F16_arbitrary_seqlen = 1
    NVTE_FP8 = 2


class FP8FwdTensors(enum.IntEnum):
    """Tensors of a forward pass that have a scale in eight bits."""

    GEMM1_INPUT = 0
    GEMM1_WEIGHT = 1
    GEMM1_OUTPUT = 2
    GEMM2_INPUT = 3
    GEMM2_WEIGHT = 4
    GEMM2_OUTPUT = 5
    GEMM3_INPUT = 6
    GEMM3_WEIGHT = 7
    GEMM3_OUTPUT = 8


class FP8BwdTensors(enum.IntEnum):
    """Tensors of a backward pass that have a scale in eight bits."""

    GRAD_OUTPUT1 = 0
    GRAD_INPUT1 = 1
    GRAD_OUTPUT2 = 2
    GRAD_INPUT2 = 3
    GRAD_OUTPUT3 = 4
    GRAD_INPUT3 = 5


class _Named:
    """A member of an enumeration of which only the identity matters."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __int__(self) -> int:
        return 0


class _Names(type):
    """A class that has every attribute it is asked for, the same each time."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(cls, name, _Named(f"{cls.__name__}.{name}"))
        return getattr(cls, name)


def missing(name: str) -> Any:
    """Return a class for a class's name, else a function that raises when called."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name[0].isupper():
        parts = {"__init__": lambda self, *a, **k: None, "__members__": {}}
        setattr(_MODULE, name, _Names(name, (), parts))
        return getattr(_MODULE, name)

    def kernel(*args: object, **kwargs: object) -> None:
        raise NotImplementedError(f"no shapes are known of the kernel {name}")

    kernel.__name__ = name
    return kernel


def _fused_attn_fwd(*args: Any) -> list[torch.Tensor]:
    """Output, one statistic of 32 bits a row, and the random state (seed, offset)."""
    query, _, value = args[16:19]
    length, batch, heads = query.shape[:3]
    return [
        query.new_empty(*query.shape[:-1], value.shape[-1]),
        query.new_empty(batch, heads, length, 1, dtype=torch.float32),
        query.new_empty(2, dtype=torch.int64),
    ]


def _rows(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.numel() // x.shape[-1], dtype=torch.float32)


def _layernorm_fwd(
    x: Any, weight: Any, bias: Any, eps: Any, out: Any, quantizer: Any, *_: Any
) -> Any:
    return formats.normed(x, out, quantizer), _rows(x), _rows(x)


def _rmsnorm_fwd(
    x: Any, weight: Any, eps: Any, out: Any, quantizer: Any, *_: Any
) -> Any:
    return formats.normed(x, out, quantizer), None, _rows(x)


def _generic_gemm(*args: Any, **kwargs: Any) -> Any:
    """Product in cuBLAS's column-major sense: ``b`` times ``a`` in torch's."""
    a, a_transposed, b, b_transposed, out, _, dtype, bias = args[:8]
    grad = args[11]
    dtype = b.dtype if dtype is None else _FORMATS[DType(int(dtype))]
    left, right = formats.shape_of(a), formats.shape_of(b)
    width = left[0] if a_transposed else left[1]
    shape = (right[-1], width) if b_transposed else (*right[:-1], width)
    out = torch.empty(shape, dtype=dtype) if out is None else out
    bias_grad = torch.empty(width, dtype=dtype) if grad and bias is not None else None
    return out, bias_grad, None, None


def _fused_rope(x: torch.Tensor, *_: Any) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _grouped_gemm(*args: Any, **kwargs: Any) -> Any:
    """Products into the buffer given; bias gradients where there is none."""
    return [torch.empty(1)] if args[4] is None else None


_KERNELS: dict[str, Any] = {
    "DType": DType,
    "NVTE_Fused_Attn_Backend": AttentionBackend,
    "FP8FwdTensors": FP8FwdTensors,
    "FP8BwdTensors": FP8BwdTensors,
    "get_fused_attn_backend": lambda *args, **kwargs: (
        AttentionBackend.NVTE_F16_arbitrary_seqlen
    ),
    "fused_attn_fwd": _fused_attn_fwd,
    "layernorm_fwd": _layernorm_fwd,
    "rmsnorm_fwd": _rmsnorm_fwd,
    "fused_rope_forward": _fused_rope,
    "generic_gemm": _generic_gemm,
    "te_general_grouped_gemm": _grouped_gemm,
    "split_quantize": formats.split_quantize,
    "quantize": formats.quantize,
    "create_empty_quantized_tensor": formats.empty,
    "fp8_transpose": formats.transpose,
    "swap_first_dims": formats.swap_first_dims,
    "fused_multi_row_padding": lambda *args: None,
    "fused_multi_row_unpadding": lambda *args: None,
    "fused_amax_and_scale_update_after_reduction": lambda *args: None,
    "get_cublasLt_version": lambda: 130_000,
    "get_cudart_version": lambda: 12_080,
    "get_cudnn_version": lambda: 92_000,
    "get_num_cublas_streams": lambda: 4,
}


class _Compiled:
    """A function that Triton compiles: launching it over a grid writes nothing."""

    def __init__(self, function: Any = None, **options: Any) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs) if self._function else type(self)(*args)

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **kwargs: None


_TRITON: dict[str, Any] = {
    "__version__": "3.4.0",
    "jit": _Compiled,
    "next_power_of_2": lambda n: 1 << (n - 1).bit_length(),
    "cdiv": lambda n, d: -(-n // d),
}


class _Anything:
    """A module of Triton: decorators leave a function, all else is this again."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        plain = len(args) == 1 and callable(args[0]) and not kwargs
        return args[0] if plain else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Any:
        return self

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__


def _triton(name: str) -> None:
    module = types.ModuleType(name)
    module.__path__ = []
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)

    def attribute(wanted: str) -> Any:
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        return _Anything()

    module.__getattr__ = attribute  # type: ignore[method-assign]
    sys.modules[name] = module
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, module)
    else:
        module.__dict__.update(_TRITON)


def install() -> None:
    """Put the compiled module and Triton's names among the imported ones."""
    # torch must have looked for the real Triton before one without kernels is there.
    for name in _LOOKING_FOR_TRITON:
        importlib.import_module(f"torch.{name}")
    spec = importlib.machinery.ModuleSpec(_MODULE.__name__, None)
    _MODULE.__spec__ = spec
    for name, kernel in _KERNELS.items():
        setattr(_MODULE, name, kernel)
    _MODULE.__getattr__ = missing  # type: ignore[method-assign]
    sys.modules[_MODULE.__name__] = _MODULE
    for part in _TRITON_MODULES:
        _triton(f"triton.{part}" if part else "triton")
