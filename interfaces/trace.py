"""One simulated step as a trace that Perfetto and Chrome's tracing page open.

Format: the trace event format of Chrome, complete events (``ph: X``) in
microseconds; a process a step, a thread a pipeline rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..models.layout import SCHEDULES
from ..models.pipeline.schedules import order
from ..models.pipeline.timeline import timeline
from ..models.profiles import profile_for
from ..models.time import TimeModel
from ..models.time.pipeline import pipeline

if TYPE_CHECKING:
    from ..models.layout import Layout
    from ..models.pipeline.timeline import Event, Timeline
    from ..models.problem import Problem

_MICRO = 1e6


def step_timeline(problem: Problem, layout: Layout) -> Timeline:
    """Simulate the pipelined part of one step.

    Raises
    ------
    InputError
        If the layout's split has no member of its shape, or its schedule has no
        step time.
    """
    columns = {n: np.array([c], np.int64) for n, c in layout.point().items()}
    model = TimeModel(problem, profile_for(problem))
    found = model.stage_times(columns)
    shape = pipeline(
        problem.architecture, layout.schedule, layout.split, layout.pp, layout.vpp
    )
    what = order(SCHEDULES[layout.schedule], layout.pp, layout.vpp, layout.m)
    ahead, back = (shape.chunk_times(t)[0] for t in (found.forward, found.backward))
    weight = shape.chunk_times(found.weight)[0]
    if what.split:
        back = back - weight
    return timeline(
        what, ahead, back, weight if what.split else None, p2p=float(found.hop[0])
    )


def trace(problem: Problem, layout: Layout) -> dict[str, Any]:
    """Return a trace document of one step of a layout."""
    step = step_timeline(problem, layout)
    names: list[dict[str, Any]] = [
        _name("process_name", 0, f"{problem.architecture.name}: one step"),
        *(_name("thread_name", r, f"pipeline rank {r}") for r in range(layout.pp)),
    ]
    return {
        "traceEvents": [*names, *(_event(e) for e in step.events())],
        "displayTimeUnit": "ms",
        "otherData": {"layout": layout.labels(), "step": "pipelined part, simulated"},
    }


def _name(what: str, rank: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 0, "tid": rank, "args": {"name": name}}


def _event(event: Event) -> dict[str, Any]:
    parts = {
        "forward": event.forward,
        "backward": event.backward,
        "weight gradients": event.weight,
    }
    return {
        "ph": "X",
        "name": event.label,
        "cat": "pipeline",
        "pid": 0,
        "tid": event.rank,
        "ts": event.start * _MICRO,
        "dur": (event.end - event.start) * _MICRO,
        "args": {
            what: f"chunk {unit[0]}, micro-batch {unit[1]}"
            for what, unit in parts.items()
            if unit
        },
    }
