"""The same question on fewer devices, or with a batch nearby."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...models.errors import InputError
from ...models.time.flops import model_flops
from ..domains import bind
from ..peaks import Peaks
from ..scoring import Scores
from ..vector import legal_points

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from ...models.expr import Array
    from ...models.problem import Problem
    from ..domains import Domains
    from ..space import Space
    from ..vector import Points
    from .goals import Goal

    Floats = npt.NDArray[np.float64]

#: Batches that a tolerance looks at, beside the given one, at most on each side.
_BATCHES = 4


@dataclass(frozen=True, eq=False)
class Variant:
    """One cluster size and batch with its feasible configurations.

    Attributes
    ----------
    problem, domains, memory, scores
        The question, its space, and what judges configurations.
    points
        Every legal point.
    columns
        Feasible configurations that may keep the limits, one a row.
    bounds
        Lower bounds of their step times, shape [n], in seconds.
    feasible, legal
        How many configurations fit with the headroom asked for, and are legal.
    room
        What a rank may use with the headroom asked for, in bytes.
    most_time
        Step time above which a limit is broken, in seconds.
    """

    problem: Problem
    domains: Domains
    memory: Peaks
    scores: Scores
    points: Points
    columns: Mapping[str, Array]
    bounds: Floats
    feasible: int
    legal: int
    most_time: float
    room: int


def variants(problem: Problem, goal: Goal, batch_tolerance: float) -> list[Problem]:
    """Return the problems to look at.

    Parameters
    ----------
    problem
        The question as asked.
    goal
        With a limit on devices, halves of the cluster down to one node count too;
        without, the whole cluster alone.
    batch_tolerance
        How far the global batch may be from the given one, as a share of it.

    Raises
    ------
    InputError
        If the tolerance is not a share, or the limit leaves no device.
    """
    if not 0 <= batch_tolerance < 1:
        raise InputError(
            f"the batch tolerance is a share in 0..1, got {batch_tolerance:g}"
        )
    clusters = [problem.cluster]
    if any(x.name == "gpus" for x in goal.limits):
        most, nodes = goal.least("gpus"), problem.cluster.nodes
        sizes = [
            nodes >> i for i in range(nodes.bit_length()) if (nodes >> i) << i == nodes
        ]
        clusters = [replace(problem.cluster, nodes=n) for n in sizes]
        clusters = [c for c in clusters if c.world_size <= most]
        if not clusters:
            raise InputError(
                f"gpus<= must leave at least one node of "
                f"{problem.cluster.gpus_per_node} devices, got {most:g}"
            )
    batch = problem.training.global_batch
    batches = [batch]
    if (reach := int(batch * batch_tolerance)) > 0:
        unit = 1 << max((reach // _BATCHES).bit_length() - 1, 0)
        low = -(-(batch - reach) // unit) * unit
        batches += [b for b in range(low, batch + reach + 1, unit) if b and b != batch]
    return [
        replace(problem, cluster=c, training=replace(problem.training, global_batch=b))
        for c in clusters
        for b in batches
    ]


def variant(
    problem: Problem,
    space: Space,
    goal: Goal,
    progress: Callable[[str, int, int], None] | None = None,
) -> Variant:
    """Enumerate one variant, and bound what may keep the limits.

    Raises
    ------
    InputError
        If a pin lies outside its axis or no ``mbs * dp`` divides the batch.
    """
    domains = bind(problem, space)
    points = legal_points(domains)
    memory = Peaks(domains)
    room = memory.limit - int(goal.least("headroom"))
    mask = points.legal & (memory.of_points(points, progress) <= room)
    columns = points.columns(mask)
    scores = Scores(problem)
    bounds = scores.bounds(columns) if mask.any() else np.zeros(0)
    most_time = goal.most_time(problem, _model_flops(problem))
    keep = bounds <= most_time
    return Variant(
        problem=problem,
        domains=domains,
        memory=memory,
        scores=scores,
        points=points,
        columns={name: column[keep] for name, column in columns.items()},
        bounds=bounds[keep],
        feasible=int(mask.sum()),
        legal=points.count,
        most_time=most_time,
        room=room,
    )


def _model_flops(problem: Problem) -> float:
    """Return the model FLOPs of a step, as MFU counts them."""
    training = problem.training
    batch = training.global_batch
    return float(
        model_flops(problem.architecture, training.seq_len, batch, causal=True)
    )
