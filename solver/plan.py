"""The main question: which configurations are feasible, and which is fastest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .answer import Answer, Certificate, Choice, Infeasible, Memory
from .domains import Domains, bind
from .feasible_set import NAMES
from .peaks import Peaks
from .scoring import Scores
from .single import rank_peaks
from .space import load_space
from .vector import Points, legal_points

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..models.expr import Array
    from ..models.layout import Layout
    from ..models.problem import Problem
    from .answer import Projection
    from .space import Space

_BATCH = 64


def plan(
    problem: Problem,
    space: Space | None = None,
    *,
    top: int = 10,
    progress: Callable[[str, int, int], None] | None = None,
) -> Answer | Infeasible:
    """Enumerate a space completely and return its fastest configurations.

    Parameters
    ----------
    problem
        Model, cluster, training, dialect and pins.
    space
        The axes and their values; the default space if None.
    top
        How many configurations to return, fastest first.
    progress
        Called with a text, what is done, and how much there is.

    Returns
    -------
    Answer or Infeasible
        The fastest configurations with a certificate, or the proof that there is
        none.

    Raises
    ------
    InputError
        If a pin lies outside its axis or no ``mbs * dp`` divides the batch.
    """
    domains = bind(problem, space or load_space())
    points = legal_points(domains)
    memory = Peaks(domains)
    peaks = memory.of_points(points, progress)
    mask = points.legal & (peaks <= memory.limit)
    if not mask.any():
        from .explain import explain

        return explain(domains, points.count)
    columns = points.columns(mask)
    scores = Scores(problem)
    bounds = scores.bounds(columns)
    best = fastest(columns, bounds, scores, top, progress)
    choices = tuple(_choice(memory, domains, layout, p) for layout, p in best)
    return Answer(
        problem=problem,
        answers=choices,
        certificate=_certificate(domains, points, mask.sum(), choices, scores),
    )


def fastest(
    columns: Mapping[str, Array],
    bounds: np.ndarray[tuple[int], np.dtype[np.float64]],
    scores: Scores,
    top: int,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[tuple[Layout, Projection]]:
    """Return the configurations with the least simulated step time, fastest first.

    Configurations are simulated in the order of their lower bounds until no bound
    left is below the slowest one kept: the rest cannot enter the list.
    """
    order = np.lexsort([*(columns[n] for n in reversed(NAMES)), bounds])
    kept: list[tuple[float, int, Projection]] = []
    for start in range(0, len(order), _BATCH):
        batch = order[start : start + _BATCH]
        if len(kept) >= top and bounds[batch[0]] >= kept[top - 1][0]:
            break
        layouts = [_layout(columns, int(i)) for i in batch]
        for i, found in enumerate(scores.simulated(layouts)):
            kept.append((found.step_time_s, start + i, found))
        kept = sorted(kept, key=lambda entry: entry[:2])[:top]
        if progress:
            progress(
                "simulated step times", min(start + _BATCH, len(order)), len(order)
            )
    return [(_layout(columns, int(order[i])), found) for _, i, found in kept]


def _layout(columns: Mapping[str, Array], row: int) -> Layout:
    from ..models.layout import Layout

    return Layout.from_point({n: int(c[row]) for n, c in columns.items()})


def _choice(
    memory: Peaks, domains: Domains, layout: Layout, projection: Projection
) -> Choice:
    per_rank = rank_peaks(domains, layout, memory)
    return Choice(
        layout=layout,
        memory=Memory(peak_bytes=max(per_rank), per_rank=per_rank),
        projection=projection,
    )


def _certificate(
    domains: Domains,
    points: Points,
    feasible: int,
    choices: tuple[Choice, ...],
    scores: Scores,
) -> Certificate:
    """Everything was enumerated and no bound is below the best: the gap is 0."""
    best = choices[0].projection.step_time_s
    return Certificate(
        status="complete",
        space=domains.space.label,
        space_hash=domains.space.content_hash,
        dialect=domains.problem.dialect,
        profile=scores.profile.name,
        calibrated=scores.profile.calibrated,
        feasible_count=int(feasible),
        legal_count=points.count,
        bound=best,
        gap=0.0,
    )
