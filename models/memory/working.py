"""What sharded weights need while they are used: gathered layers, reduced gradients.

ZeRO-3 and Megatron's FSDP gather a layer while another one computes. torch's FSDP2
keeps the root group (embedding, final norm, head) gathered through the backward pass,
computes with one layer while it gathers the next, both in 16 bits, and reduces the
gradients of a third, in 32 bits. Source: distributed/fsdp/_fully_shard of torch 2.13,
with a layer for each group.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..axis_values import SHARDINGS
from ..expr import at_least, equals, maximum, total, where

if TYPE_CHECKING:
    from ..expr import Expr
    from ..stages import Stage
    from .state import State

#: The sharding stage from which weights are gathered layer by layer.
GATHERING = SHARDINGS.index("zero-3")
FSDP2 = SHARDINGS.index("fsdp2")
#: Bytes of a gathered number, and of one whose gradient is reduced.
GATHERED_BYTES, REDUCED_BYTES = 2, 4


def working_set(state: State, stage: Stage) -> Expr:
    """Return a rank's bytes of gathered weights and reduced gradients.

    Parameters
    ----------
    state
        Parameters of the ranks.
    stage
        The rank's chunks.
    """
    dims, held = state.dims, _layers(state, stage)
    if not held or dims.sharding.hi < GATHERING:
        return total(())
    # Which is largest depends on the axes: tp divides one, ep etp the other.
    layer = maximum(*held)
    two = where(at_least(dims.sharding, GATHERING), 2 * state.weight_bytes * layer, 0)
    if dims.sharding.hi < FSDP2:
        return two
    gathered = GATHERED_BYTES * total((_root(state, stage), 2 * layer))
    torch_one = total((gathered, REDUCED_BYTES * layer))
    return where(equals(dims.sharding, FSDP2), torch_one, two)


def _layers(state: State, stage: Stage) -> list[Expr]:
    kinds = state.architecture.kinds
    return [
        total(state.counts(state.layer(kind)))
        for index, kind in enumerate(kinds)
        if any(chunk.layers[index] for chunk in stage)
    ]


def _root(state: State, stage: Stage) -> Expr:
    """Return the numbers of a rank's ends, which no layer's group holds."""
    nothing = (0,) * len(state.architecture.kinds)
    ends = tuple(replace(chunk, layers=nothing) for chunk in stage)
    return total(state.counts(state.numbers(ends)))
