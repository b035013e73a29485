"""What a whole rank allocates in each phase, from the order in which it runs.

A step goes through warm-up (forwards alone), steady state (forwards and backwards in
turn), cool-down (backwards alone) and the optimizer's step. Before the first step
there is the initialisation, and the first step has no optimizer moments yet, so that
the second one peaks higher.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..expr import value
from ..pipeline.held import held
from ..pipeline.inflight import saturation
from ..pipeline.order import B_CHUNK, F_CHUNK
from ..pipeline.schedules import order
from .phases import always, fullest, state, total_bytes

if TYPE_CHECKING:
    from ..stages import Stage
    from .moments import InFlight
    from .phases import Run

Phase = Literal[
    "initialisation",
    "first forward",
    "warm-up",
    "steady",
    "cool-down",
    "optimizer step",
    "second step",
]


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
    whole, library = total_bytes(state(run, stage)), total_bytes(always(run, stage))
    moments_only = _moments_of_adam(run, stage)
    early = whole - moments_only
    loads = vectors_by_phase(run, rank)
    alive = {
        phase: total_bytes(fullest(run, stage, vectors, forward=phase in _FORWARDS)[1])
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
