"""Peak bytes of a layout: what decides fields that a row leaves unstated."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ...models.expr import value
from ...models.layout import SCHEDULES, Dims
from ...models.memory import MemoryModel
from ...models.pipeline.inflight import in_flight, saturation
from ...models.stages import stages
from ...models.units import GIB

if TYPE_CHECKING:
    from ...models.architecture import Architecture
    from ...models.layout import Layout
    from ...models.problem import Problem, Training

#: Device memory that context, communicators and workspaces take of a process.
#: Prior; NCCL alone takes 0.3 to 0.4 GB for eight devices.
RESERVE = 3 * GIB
_HELD = ("1f1b", "interleaved", "gpipe")


def peak_bytes(problem: Problem, layout: Layout) -> int:
    """Return the peak bytes of the fullest pipeline rank, tensors alone."""
    schedule = "interleaved" if layout.vpp > 1 else SCHEDULES[layout.schedule]
    schedule = schedule if schedule in _HELD else "1f1b"
    enough = saturation(schedule, layout.pp, layout.vpp)
    m = layout.m if layout.vpp == 1 else -(-layout.m // layout.pp) * layout.pp
    held = in_flight(schedule, layout.pp, layout.vpp, min(m, enough))
    ranks = stages(problem.architecture, layout.split, layout.pp, layout.vpp)
    point = layout.point()
    model = _model(problem.architecture, problem.training, layout)
    return max(
        value(model.rank_peak(stage, h), point)
        for stage, h in dict.fromkeys(zip(ranks, held, strict=True))
    )


def fits(problem: Problem, layout: Layout) -> bool:
    """Return whether a layout leaves the reserve free on the device."""
    return peak_bytes(problem, layout) + RESERVE <= problem.cluster.device.hbm_bytes


@lru_cache(maxsize=256)
def _model(
    architecture: Architecture, training: Training, layout: Layout
) -> MemoryModel:
    dims = Dims.of({name: (code,) for name, code in layout.point().items()})
    return MemoryModel(architecture, training, dims)
