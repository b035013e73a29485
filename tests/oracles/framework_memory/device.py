"""What stands in for a GPU: torch's CUDA entry points, devices and process groups.

Everything runs on fake tensors of device ``cpu``: torch without CUDA aborts on fake
CUDA tensors that require gradients. Bytes do not depend on the device; the kernels
whose CPU form saves other bytes are replaced in ``kernels``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.overrides import TorchFunctionMode
from torch.testing._internal.distributed.fake_pg import FakeStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CPU = torch.device("cpu")


class CudaToCpu(TorchFunctionMode):
    """Send what is asked for on a CUDA device, by name or number, to the CPU."""

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
        if func is torch.Tensor.to:
            args = tuple(
                CPU if isinstance(arg, str) and "cuda" in arg else arg for arg in args
            )
        return func(*args, **kwargs)


class _Stream:
    """A stream or an event of a device that has nothing to wait for."""

    cuda_stream = 0
    device = CPU
    priority = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: self


class _Properties:
    """Properties of one H100, asked by kernels' launch code only."""

    major, minor = 9, 0  # of ``use_capability``
    multi_processor_count = 132
    name = "H100"
    total_memory = 80 << 30
    shared_memory_per_multiprocessor = 233_472
    L2_cache_size = 50 << 20


class _Generators:
    """The random generators of all devices: one, whose state is given."""

    def __init__(self, state: torch.Tensor) -> None:
        self.state = state

    def __getitem__(self, device: object) -> _Generators:
        return self

    def get_state(self) -> torch.Tensor:
        return self.state


@contextlib.contextmanager
def _nothing(*args: object, **kwargs: object) -> Iterator[None]:
    yield


def _constant(result: object) -> Callable[..., Any]:
    return lambda *args, **kwargs: result


_plain_type = torch.Tensor.type


def _type(self: Any, *args: Any, **kwargs: Any) -> Any:
    # Optimizers take tensors by the name of their type, which has the device in it.
    answer = _plain_type(self, *args, **kwargs)
    if not isinstance(answer, str) or "cuda" in answer:
        return answer
    return answer.replace("torch.", "torch.cuda.")


def use_capability(major: int) -> None:
    """Answer as a device of this generation: 9 Hopper, 10 Blackwell."""
    _Properties.major = major


def install() -> None:
    """Replace the calls of ``torch.cuda`` that the frameworks make by the way.

    Call it before anything of megatron-core or TransformerEngine is imported.
    """
    stream, state = _Stream(), torch.zeros(16, dtype=torch.uint8)
    replaced: dict[str, object] = {
        "is_available": _constant(True),
        "is_initialized": _constant(True),
        "device_count": _constant(8),
        "current_device": _constant(CPU),
        "get_device_name": _constant("H100"),
        "get_device_properties": _constant(_Properties),
        "get_device_capability": lambda *_: (_Properties.major, _Properties.minor),
        "get_rng_state": _constant(state),
        "set_rng_state": _constant(None),
        "manual_seed": _constant(None),
        "synchronize": _constant(None),
        "empty_cache": _constant(None),
        "is_current_stream_capturing": _constant(False),
        "current_stream": _constant(stream),
        "Stream": _constant(stream),
        "Event": _constant(stream),
        "stream": _nothing,
        "device": _nothing,
    }
    for name, stand_in in replaced.items():
        setattr(torch.cuda, name, stand_in)
    for name in ("get_rng_state", "set_rng_state"):
        setattr(torch.cuda.random, name, replaced[name])
    torch.cuda.default_generators = _Generators(state)
    torch.version.cuda = "12.9"  # from which all formats in eight bits are supported
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    torch.Tensor.record_stream = _constant(None)
    torch.Tensor.type = _type


def _gather_objects(found: list[Any], mine: Any, group: Any = None) -> None:
    found[:] = [mine] * len(found)  # the ranks of one stage hold the same objects


@contextlib.contextmanager
def _one_by_one(*args: object, **kwargs: object) -> Iterator[_Stream]:
    yield _Stream()


def start_group(world: int, rank: int) -> None:
    """Make this process one rank of a group whose collectives do nothing."""
    dist.all_gather_object = _gather_objects
    # Fake tensors know no collective of several tensors at once.
    dist._coalescing_manager = _one_by_one
    if dist.is_initialized():
        if (dist.get_world_size(), dist.get_rank()) == (world, rank):
            return
        dist.destroy_process_group()
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
