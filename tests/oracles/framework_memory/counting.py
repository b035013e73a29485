"""Which storages autograd keeps when the forward pass has ended."""

from __future__ import annotations

import weakref
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable


Items = dict[str, Any]


def _key(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


class Kept:
    """Saved tensors, each storage once, without parameters and the given inputs.

    Megatron turns gradients on again inside checkpointed forwards and empties storages
    with ``resize_(0)``: a storage counts if it is alive at the end, at its size then.
    """

    def __init__(self, module: torch.nn.Module, inputs: Iterable[torch.Tensor]) -> None:
        left_out = chain(module.parameters(), module.buffers(), inputs)
        self._left_out = {_key(tensor) for tensor in left_out}
        self._found: dict[int, dict[str, Any]] = {}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda t: t)

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        storage, key = tensor.untyped_storage(), _key(tensor)
        if key not in self._left_out and key not in self._found:
            self._found[key] = {
                "storage": weakref.ref(storage),
                "dtype": str(tensor.dtype).removeprefix("torch."),
                "shape": tuple(tensor.shape),
            }
            weakref.finalize(storage, self._found.pop, key, None)
        # Detached: a saved output would hold its own node in a cycle, never freed.
        return tensor.detach()

    def __enter__(self) -> Self:
        self._hooks.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._hooks.__exit__(*error)

    def items(self) -> list[Items]:
        """Return equal tensors together, the largest first, none without bytes."""
        alive = ((found["storage"](), found) for found in list(self._found.values()))
        return _listed(
            (found["dtype"], found["shape"], storage.nbytes())
            for storage, found in alive
            if storage is not None and storage.nbytes()
        )


def _listed(tensors: Iterable[tuple[str, tuple[int, ...], int]]) -> list[Items]:
    largest_first = sorted(
        Counter(tensors).items(), key=lambda item: (-item[0][2] * item[1], str(item[0]))
    )
    return [
        {"n": n, "dtype": dtype, "shape": list(shape), "nbytes": size}
        for (dtype, shape, size), n in largest_first
    ]


def items_of(tensors: Iterable[torch.Tensor]) -> list[Items]:
    """Return tensors that each have a storage, equal ones together."""
    return _listed(
        (str(t.dtype).removeprefix("torch."), tuple(t.shape), t.nbytes)
        for t in tensors
        if t.nbytes
    )
