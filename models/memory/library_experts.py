"""What experts hold beside the ledger: uneven routing, temporaries, buffers.

Letters: R rows that a rank's experts receive if routing is balanced, h width, T tokens
of the residual stream on a rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..architecture import MoE
from ..expr import value
from .grouped import regrouped
from .library import Held
from .library_constants import constants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..stages import Stage
    from .model import MemoryModel
    from .moments import Moment

#: How names of tensors begin that have a row for each token an expert receives.
_ROWS = ("routed ", "experts' ", "gradients of routed")
#: Name of the item that the routing's imbalance makes.
UNEVEN = "rows beyond balanced routing"
#: Row tensors that a grouped product's backward makes beside the ledger's two.
TEMPORARIES = 1


def expert_extras(model: MemoryModel, moment: Moment, code: int) -> Iterator[Held]:
    """Yield what experts add to one moment.

    Parameters
    ----------
    model
        The ledger, all axes fixed.
    moment
        What is alive.
    code
        The recompute choice.
    """
    if not model.architecture.is_moe:
        return
    kernels = model.context.kernels
    spread = kernels.capacity is None and value(model.dims.ep, {}) > 1
    names = regrouped(moment, code)
    names += [(moment.transient, 1)] if moment.transient else []
    if spread:
        uneven = constants().ratio("routing_imbalance")
        rows = sum(count * _rows(model, name, code) for name, count in names if count)
        extra = round((uneven.ratio - 1) * rows)
        yield Held(UNEVEN, extra, uneven.source)
    if moment.transient and moment.transient.startswith("layer"):
        gradients = [
            value(entry.unit.times(entry.weight), {}) // entry.count
            for entry in model.board.entries(moment.transient, code)
            if entry.name == "gradients of routed tokens"
        ]
        source = "SimuMax B200, first rank of DeepSeek-V2: one more row tensor"
        held = TEMPORARIES * sum(gradients)
        yield Held("temporaries of grouped products", held, source)


def _rows(model: MemoryModel, name: str, code: int) -> int:
    return sum(
        value(entry.unit.times(entry.weight), {})
        for entry in model.board.entries(name, code)
        if entry.name.startswith(_ROWS)
    )


def dispatch_buffers(model: MemoryModel, stage: Stage) -> Iterator[Held]:
    """Yield the buffers of DeepEP or HybridEP, which the flex dispatcher uses.

    A buffer takes the tokens of all ranks of the expert-parallel group, and a fixed
    part holds what is on its way.
    """
    kinds = model.architecture.kinds
    routed = any(
        n and isinstance(kind.feed_forward, MoE)
        for chunk in stage
        for n, kind in zip(chunk.layers, kinds, strict=True)
    )
    if routed and model.context.kernels.dispatcher == "flex":
        fixed = constants().size("dispatch_buffer_bytes")
        ranks, hidden = value(model.dims.ep, {}), model.architecture.hidden
        tokens = value(model.context.units.shard.times(2 * hidden), {}) * ranks
        yield Held("dispatcher's buffers", fixed.bytes + tokens, fixed.source)
