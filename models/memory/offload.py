"""What lies on the host: optimizer states, and activations by module.

The optimizer's offload keeps master weights and moments on the host, with a copy of the
gradients there in 32 bits, and steps there. Activations are copied to the host when
their module has run forward, and come back one layer ahead of the backward pass. All
are estimates of structure: small tensors, which the framework leaves on the device,
and the last layer's, which it does not send, are taken as sent.

Source: optimizer/cpu_offloading/hybrid_optimizer.py and
pipeline_parallel/fine_grained_activation_offload.py of Megatron-Core 0.16.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..expr import at_least, ceil_div, maximum, modulo, total, where
from .optimizers import recipe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..expr import Expr
    from ..stages import Stage
    from .entries import Entries, Entry
    from .model import MemoryModel
    from .moments import InFlight
    from .state import State

#: Bits of the offload axis.
OPTIMIZER, ACTIVATIONS = 1, 2
#: Bytes per parameter of gradients on the host.
HOST_GRADIENTS = 4
#: Tensors that modules qkv_linear, core_attn, attn_proj, expert_fc1 and moe_act keep.
SENT = frozenset(
    {
        "attention norm input",
        "attention norm output",
        "queries",
        "keys",
        "values",
        "packed queries, keys and values",
        "attention output",
        "input of the output projection",
        "routed tokens",
        "experts' first projection",
    }
)
#: Layers whose tensors are back at once: the one that runs, and the next.
RETURNED = 2


def stays(entries: Iterable[Entry], offload: int) -> Entries:
    """Yield what is kept on the device."""
    sends = offload & ACTIVATIONS
    return (e for e in entries if not (sends and e.name in SENT))


def sent(entries: Iterable[Entry], offload: int) -> Entries:
    """Yield what is kept on the host."""
    sends = offload & ACTIVATIONS
    return (e for e in entries if sends and e.name in SENT)


def on_device(offload: Expr, states: Expr) -> Expr:
    """Return the optimizer states that stay on the device, in bytes."""
    if offload.hi == 0:
        return states
    return where(modulo(offload, 2), 0, states)


def optimizer_host(state: State, stage: Stage) -> Expr:
    """Return a rank's optimizer states and gradients on the host, in bytes."""
    dims = state.dims
    if dims.offload.hi == 0:
        return total(())
    per_number = recipe(state.optimizer).states + HOST_GRADIENTS
    sizes = []
    for numbers, ranks in state.shared_numbers(stage):
        whole = per_number * numbers
        divided = at_least(dims.sharding, 1)
        sizes.append(where(divided, ceil_div(whole, ranks), whole))
    return where(modulo(dims.offload, 2), total(sizes), 0)


def host_bytes(model: MemoryModel, stage: Stage, in_flight: InFlight) -> Expr:
    """Return a rank's bytes on the host; a node holds those of all its ranks.

    Parameters
    ----------
    model
        The memory of the problem.
    stage, in_flight
        As for ``MemoryModel.rank_peak``.
    """
    optimizer = optimizer_host(model.state, stage)
    if model.dims.offload.hi < ACTIVATIONS:
        return optimizer
    layers = [model.saved(f"layer {k} on the host") for k in range(model.kind_count)]
    held = [
        total(
            micro_batches * count * size
            for micro_batches, chunk in zip(vector, stage, strict=True)
            for count, size in zip(chunk.layers, layers, strict=True)
            if micro_batches and count
        )
        for vector in in_flight
    ]
    return total((optimizer, maximum(*held)))
