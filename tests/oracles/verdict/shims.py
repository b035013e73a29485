"""What stands in for a GPU, for TransformerEngine and for DeepEP.

megatron-core runs as installed: only what needs a device or a package that is built
for one is replaced, by something that computes nothing and refuses nothing. The
rules of those packages are therefore not asked here.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import sys
import types
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CPU = torch.device("cpu")


class CudaToCpu(TorchFunctionMode):
    """Send what is asked for on a CUDA device to the CPU, and pin no memory."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        if device is not None and (isinstance(device, int) or "cuda" in str(device)):
            kwargs["device"] = CPU
        kwargs.pop("pin_memory", None)
        return func(*args, **kwargs)


class _Stream:
    """A stream or an event without a device."""

    cuda_stream = 0
    device = CPU

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: self


@contextlib.contextmanager
def _nothing(*args: object, **kwargs: object) -> Iterator[None]:
    yield


def no_device() -> None:
    """Replace the calls of ``torch.cuda`` that megatron-core makes by the way."""
    stream = _Stream()
    state = torch.zeros(16, dtype=torch.uint8)
    properties = types.SimpleNamespace(
        major=9, minor=0, multi_processor_count=132, name="none", total_memory=80 << 30
    )
    quiet = {
        "current_device": lambda: CPU,
        "device_count": lambda: 8,
        "synchronize": lambda *a, **k: None,
        "empty_cache": lambda *a, **k: None,
        "current_stream": lambda *a, **k: stream,
        "Stream": lambda *a, **k: stream,
        "Event": lambda *a, **k: stream,
        "stream": _nothing,
        "device": _nothing,
        "get_device_properties": lambda *a, **k: properties,
        "get_device_capability": lambda *a, **k: (9, 0),
        "get_rng_state": lambda *a, **k: state,
        "set_rng_state": lambda *a, **k: None,
        "is_initialized": lambda: True,
        "manual_seed": lambda *a, **k: None,
        "is_current_stream_capturing": lambda: False,
    }
    for name, value in quiet.items():
        setattr(torch.cuda, name, value)
    torch.Tensor.cuda = lambda self, *a, **k: self  # type: ignore[method-assign]
    torch.Tensor.record_stream = lambda self, s: None  # type: ignore[method-assign]


def _module(name: str, **content: object) -> None:
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__dict__.update(content)
    sys.modules[name] = module


class _FusedAdam:
    """The signature that ``OptimizerConfig`` looks for."""

    def __init__(
        self,
        params: object = None,
        master_weight_dtype: object = None,
        exp_avg_dtype: object = None,
        exp_avg_sq_dtype: object = None,
        use_decoupled_grad: bool = False,
    ) -> None:
        raise NotImplementedError


def _stand_in(*args: object, **kwargs: object) -> Any:
    raise NotImplementedError("a kernel that only a device has")


def other_packages() -> None:
    """Let megatron-core believe TransformerEngine and DeepEP are there.

    Call it once megatron-core is imported, which decides on import what it has.
    """
    import megatron.core.optimizer.optimizer_config as optimizer
    import megatron.core.tensor_parallel.random as random
    import megatron.core.transformer.moe.moe_utils as moe_utils
    import megatron.core.transformer.moe.token_dispatcher as dispatchers
    import megatron.core.transformer.multi_latent_attention as latent
    import megatron.core.transformer.transformer_config as config

    _module("transformer_engine")
    _module("transformer_engine.pytorch")
    _module("transformer_engine.pytorch.optimizers", FusedAdam=_FusedAdam)
    config.is_te_min_version = optimizer.is_te_min_version = lambda *a, **k: True
    moe_utils.te_general_gemm = None
    for name in (
        "fused_permute",
        "fused_permute_with_probs",
        "fused_sort_chunks_by_index",
        "fused_sort_chunks_by_index_with_probs",
        "fused_unpermute",
    ):
        setattr(moe_utils, name, _stand_in)
    latent.HAVE_TE = False  # it takes importing the wrapper for having the package
    for name in ("fused_dispatch", "hybrid_ep_dispatch"):
        setattr(dispatchers, name, _stand_in)
    dispatchers.set_deepep_num_sms = lambda *a, **k: None
    random._get_cuda_rng_state = lambda *a, **k: torch.zeros(16, dtype=torch.uint8)
    random._set_cuda_rng_state = lambda *a, **k: None
    random.CudaRNGStatesTracker.fork = lambda self, name="": _nothing()
