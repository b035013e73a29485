"""What a whole rank allocates, phase by phase, from the order in which it runs.

A step goes through warm-up (forwards alone), steady state (forwards and backwards in
turn), cool-down (backwards alone) and the optimizer's step. Before the first step
there is the initialisation, and the first step has no optimizer moments yet, so that
the second one peaks higher.

All is torch's *allocated* memory: context and communicators are outside it, see
``library_device``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..expr import value
from ..pipeline.held import held
from ..pipeline.inflight import in_flight, saturation
from ..pipeline.order import B_CHUNK, F_CHUNK
from ..pipeline.schedules import order
from .entries import NOTHING, Recompute
from .grouped import regrouped
from .library import (
    FLASH,
    Held,
    batches,
    deferred_logits,
    layer_extras,
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

Phase = Literal[
    "initialisation",
    "first forward",
    "warm-up",
    "steady",
    "cool-down",
    "optimizer step",
    "second step",
]


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
    return RankPeak(rank=rank, bytes=_total(items), items=items, moment=named)


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
            *expert_extras(model, moment, code),
        )
        if best is None or _total(alive) > _total(best[1]):
            best = moment, alive
    assert best is not None
    return best


def _total(held: Iterable[Held]) -> int:
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


def phases(run: Run, rank: int) -> dict[Phase, int]:
    """Return the peak bytes of one rank in every phase.

    Parameters
    ----------
    run
        The configuration.
    rank
        Pipeline rank, from 0.
    """
    stage = run.stages[rank]
    whole, library = _total(state(run, stage)), _total(always(run, stage))
    moments_only = _moments_of_adam(run, stage)
    early = whole - moments_only
    loads = vectors_by_phase(run, rank)
    alive = {
        phase: _total(fullest(run, stage, vectors, forward=phase in _FORWARDS)[1])
        for phase, vectors in loads.items()
    }
    found: dict[Phase, int] = {"initialisation": early}
    for phase in ("first forward", "warm-up", "steady", "cool-down"):
        if phase in alive:
            found[phase] = early + library + alive[phase]
    found["optimizer step"] = whole + library
    found["second step"] = whole + library + max(alive.values())
    return found


def _moments_of_adam(run: Run, stage: Stage) -> int:
    """Return the bytes that the optimizer's first step makes: all but its weights."""
    parts = [
        value(size, {})
        for name, size in run.model.state.bytes(stage)
        if name.startswith("optimizer states")
    ]
    # Of 12 bytes a parameter 4 are the master weights, made with the optimizer.
    return sum(parts) * 2 // 3


#: Phases in which no backward runs.
_FORWARDS = ("first forward", "warm-up")


@lru_cache(maxsize=256)
def _order_vectors(
    schedule: str, pp: int, vpp: int, m: int, group: int | None, rank: int
) -> dict[str, InFlight]:
    plan = order(schedule, pp, vpp, m, group)
    full, weights = held(plan)
    part = slice(plan.starts[rank], plan.starts[rank + 1])
    loads, slots = (full + weights)[part], plan.slots[part]
    forwards = np.flatnonzero(slots[:, F_CHUNK] >= 0)
    backwards = np.flatnonzero(slots[:, B_CHUNK] >= 0)
    bounds = {
        "first forward": (0, 1),
        "warm-up": (0, backwards[0]),
        "steady": (backwards[0] - 1 if backwards[0] else 0, forwards[-1] + 1),
        "cool-down": (forwards[-1] + 1, len(slots)),
    }
    return {
        phase: tuple(map(tuple, np.unique(loads[a:b], axis=0).tolist()))
        for phase, (a, b) in bounds.items()
        if b > a
    }


def vectors_by_phase(run: Run, rank: int) -> dict[str, InFlight]:
    """Return the loads of micro-batches that a rank holds in each phase of a step."""
    enough = saturation(run.schedule, run.pp, run.vpp, run.software.group)
    m = run.m
    if m > enough:
        step = run.software.group or run.pp
        m = enough + (m % step if run.schedule == "interleaved" else 0)
    return _order_vectors(run.schedule, run.pp, run.vpp, m, run.software.group, rank)
