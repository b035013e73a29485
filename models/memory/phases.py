"""What a whole rank allocates at its peak: the ledger's tensors and the libraries'.

All is torch's *allocated* memory: context and communicators are outside it, see
``library_device``. What each phase of a step needs is in ``phases_step``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..expr import value
from ..pipeline.inflight import in_flight
from .entries import NOTHING, Recompute
from .grouped import regrouped
from .library import (
    FLASH,
    Held,
    batches,
    deferred_logits,
    layer_extras,
    moment_extras,
    scripted_loss,
    workspaces,
)
from .library_experts import dispatch_buffers, expert_extras
from .moments import Moment, moments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..stages import Stage
    from .library import Software
    from .model import MemoryModel
    from .moments import InFlight


@dataclass(frozen=True, kw_only=True)
class Run:
    """One configuration whose whole ranks are asked for.

    Attributes
    ----------
    model
        The ledger, all axes fixed.
    stages
        The chunks of every pipeline rank.
    schedule, m
        Name of the schedule; micro-batches of a step.
    software
        What runs it.
    """

    model: MemoryModel
    stages: tuple[Stage, ...]
    schedule: str
    m: int
    software: Software

    @property
    def pp(self) -> int:
        """Pipeline ranks."""
        return len(self.stages)

    @property
    def vpp(self) -> int:
        """Chunks of a rank."""
        return len(self.stages[0])


@dataclass(frozen=True, kw_only=True)
class RankPeak:
    """The most that one pipeline rank allocates.

    Attributes
    ----------
    rank
        Pipeline rank, from 0.
    bytes
        Bytes allocated at the peak.
    items
        What they are; they sum to ``bytes``.
    moment
        What runs then, in the ledger's words.
    """

    rank: int
    bytes: int
    items: tuple[Held, ...]
    moment: str


def rank_peak(run: Run, rank: int) -> RankPeak:
    """Return the peak of one pipeline rank over a whole run.

    Parameters
    ----------
    run
        The configuration.
    rank
        Pipeline rank, from 0.
    """
    stage, group = run.stages[rank], run.software.group
    flights = in_flight(run.schedule, run.pp, run.vpp, run.m, group)[rank]
    moment, alive = fullest(run, stage, flights)
    items = (*state(run, stage), *always(run, stage), *alive)
    named = moment.transient or "forward"
    return RankPeak(rank=rank, bytes=total_bytes(items), items=items, moment=named)


def peaks(run: Run) -> tuple[RankPeak, ...]:
    """Return the peak of every pipeline rank."""
    return tuple(rank_peak(run, rank) for rank in range(run.pp))


def worst(run: Run) -> RankPeak:
    """Return the fullest rank's peak."""
    return max(peaks(run), key=lambda peak: peak.bytes)


def state(run: Run, stage: Stage) -> list[Held]:
    """Return weights, gradients, optimizer states and cached gradients of a rank."""
    model = run.model
    source = model.state.source
    parts = [
        Held(name, value(size, {}), source) for name, size in model.state.bytes(stage)
    ]
    dummies = value(model.dummies(stage), {})
    cached = "TransformerEngine, get_dummy_wgrad"
    narrow = value(model.copies(stage), {})
    return [
        *parts,
        Held("dummy weight gradients", dummies, cached),
        Held("weights in eight or four bits", narrow, "TransformerEngine, quantizers"),
    ]


def always(run: Run, stage: Stage) -> list[Held]:
    """Return what libraries hold at any time of a step."""
    model, software = run.model, run.software
    found = [*workspaces(model, stage, software), *batches(model, stage, software)]
    found += dispatch_buffers(model, stage)
    if any(chunk.head for chunk in stage):
        found += [*deferred_logits(model, software), *scripted_loss(model, software)]
    return found


def fullest(
    run: Run, stage: Stage, flights: InFlight, *, forward: bool = False
) -> tuple[Moment, tuple[Held, ...]]:
    """Return the moment with most activations, and what they are.

    Parameters
    ----------
    run, stage
        The configuration and a rank's chunks.
    flights
        The micro-batches that each chunk holds, at every moment that counts.
    forward
        Whether only forwards run then: nothing that a backward needs is alive but a
        loss.
    """
    model = run.model
    extras, code = _extras(run), value(model.dims.recompute, {})
    best: tuple[Moment, tuple[Held, ...]] | None = None
    for moment in moments(stage, flights, _kinds(model, stage)):
        if forward and moment.transient != "loss moment":
            moment = replace(moment, transient=None)
        kept = regrouped(moment, code)
        copies = sum(count * extras.get(name, 0) for name, count in kept)
        alive = (
            Held("activations", _component(model, moment), "docs/memory.md"),
            Held("attention outputs before they are turned", copies, "FlashAttention"),
            *moment_extras(model, stage, moment.transient, run.software),
            *expert_extras(model, moment, code),
        )
        if best is None or total_bytes(alive) > total_bytes(best[1]):
            best = moment, alive
    assert best is not None
    return best


def total_bytes(held: Iterable[Held]) -> int:
    """Sum the bytes of some items."""
    return sum(item.bytes for item in held)


def _extras(run: Run) -> dict[str, int]:
    """Return bytes that libraries keep of a micro-batch, by component."""
    model, software = run.model, run.software
    if software.attention != FLASH:
        return {}
    code = value(model.dims.recompute, {})
    return {
        f"{prefix}layer {index}": sum(
            value(entry.unit.times(entry.weight), {})
            for entry in layer_extras(model, kind, choice, software)
        )
        for index, kind in enumerate(model.architecture.kinds)
        for prefix, choice in (("", Recompute(code)), ("whole ", NOTHING))
    }


def _component(model: MemoryModel, moment: Moment) -> int:
    return value(model.board.expression(model._tally(moment)), {})


def _kinds(model: MemoryModel, stage: Stage) -> list[int]:
    present = {i for chunk in stage for i, n in enumerate(chunk.layers) if n}
    if any(chunk.mtp for chunk in stage):
        present.add(model.architecture.kind_of_layer[-1])
    return sorted(present)
