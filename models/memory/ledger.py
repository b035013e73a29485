"""The lines of a ledger: what is alive at a rank's peak, item by item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..expr import total
from .constants import constants
from .grouped import regrouped

if TYPE_CHECKING:
    from ..expr import Expr
    from ..stages import Stage
    from .model import MemoryModel
    from .moments import Moment
    from .tally import Choice

FRAMEWORK = "Megatron-Core 0.16.1"


@dataclass(frozen=True, kw_only=True)
class Item:
    """One line of a ledger.

    Attributes
    ----------
    name
        What it is.
    tensor
        Number format and shape of one tensor, in the letters of ``units``.
    phase
        ``state`` and ``constant`` are always alive, ``kept`` between forward and
        backward pass, ``moment`` only at the peak.
    source
        Where the rule comes from.
    bytes
        Bytes of all ``count`` tensors.
    count
        How many there are.
    """

    name: str
    tensor: str
    phase: str
    source: str
    bytes: Expr
    count: int = 1


def fixed_items(model: MemoryModel, stage: Stage) -> list[Item]:
    """Return what is alive all the time: state, caches and constants."""
    state = model.state
    items = [
        Item(
            name=name,
            tensor="parameters",
            phase="state",
            source=state.source,
            bytes=size,
        )
        for name, size in state.bytes(stage)
    ]
    items.append(
        Item(
            name="dummy weight gradients",
            tensor="one per weight shape",
            phase="state",
            source="TransformerEngine 2.20, module/base.py",
            bytes=model.dummies(stage),
        )
    )
    items.append(
        Item(
            name="weights in the format of matrix products",
            tensor="one or two copies of each projection",
            phase="state",
            source="TransformerEngine 2.20, module/base.py",
            bytes=model.copies(stage),
        )
    )
    for constant in constants(model.architecture):
        items.append(
            Item(
                name=constant.name,
                tensor="bytes",
                phase="constant",
                source=constant.source,
                bytes=total((constant.bytes,)),
            )
        )
    return items


def moment_items(model: MemoryModel, moment: Moment, choice: Choice) -> list[Item]:
    """Return what micro-batches keep, and what is alive only then.

    Parameters
    ----------
    model
        The memory of the problem.
    moment
        A moment of a rank.
    choice
        Recomputation, precision and offload.
    """
    kept = regrouped(moment, choice.recompute)
    names = [(name, count, "kept") for name, count in kept if count]
    if moment.transient:
        names.append((moment.transient, 1, "moment"))
    return [
        Item(
            name=f"{component.removesuffix(' moment')}: {entry.name}",
            tensor=f"{entry.dtype} {entry.shape}",
            phase=phase,
            source=FRAMEWORK,
            bytes=entry.unit.times(entry.weight * count),
            count=count * entry.count,
        )
        for component, count, phase in names
        for entry in model.board.entries(component, *choice)
    ]
