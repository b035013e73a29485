"""The run of a planned layout: what its problem says about whole ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..layout import AXES, DERIVED, SCHEDULES, Dims
from ..stages import stages
from .kernels import DEFAULT
from .library import Software, backend
from .library_device import generation
from .model import MemoryModel
from .phases import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..layout import Layout
    from ..problem import Problem
    from .kernels import Kernels


def run_of(problem: Problem, layout: Layout, kernels: Kernels = DEFAULT) -> Run:
    """Return a layout's run, with the software that a launch gets if not told more.

    Parameters
    ----------
    problem
        The model, machine and training.
    layout
        The layout; its split must have a member of its shape.
    kernels
        Which kernels run.
    """
    found = generation(problem.cluster.device.name)
    point = layout.point()
    values = {name: (point[name],) for name in (*AXES, *DERIVED) if name in point}
    vpp, schedule = layout.vpp, SCHEDULES[layout.schedule]
    # GPipe's and 1F1B's interleaved form is one schedule.
    named = "interleaved" if vpp > 1 and schedule in ("1f1b", "gpipe") else schedule
    return Run(
        model=MemoryModel(
            problem.architecture, problem.training, Dims.of(values), kernels
        ),
        stages=stages(problem.architecture, layout.split, layout.pp, vpp),
        schedule=named,
        m=layout.m,
        software=Software(
            generation=found, attention=backend(found, deterministic=False)
        ),
    )


def groups_of(point: Mapping[str, int]) -> dict[str, int]:
    """Return the ranks of each process group of a layout, by name."""
    return {
        "tensor parallelism": point["tp"],
        "pipeline": point["pp"],
        "context parallelism": point["cp"],
        "data parallelism": point["dp"] * point["cp"],
        "expert parallelism": point["ep"],
    }
