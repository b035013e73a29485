"""Measured steps, and what a profile predicts for many of them at once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...models.time import TimeModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...models.layout import Layout
    from ...models.problem import Problem
    from ...models.profiles import Profile
    from ...models.time import Run

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """One measured step.

    Attributes
    ----------
    problem, layout, run
        What ran.
    seconds
        The measured step.
    family
        Models that are left out of a fit together.
    source
        Samples of one source weigh together as much as those of another.
    """

    problem: Problem
    layout: Layout
    run: Run
    seconds: float
    family: str
    source: str


def predict(samples: Sequence[Sample], profile: Callable[[Sample], Profile]) -> Floats:
    """Return the projected step time of every sample, in seconds.

    Parameters
    ----------
    samples
        Samples of one problem and run are projected together.
    profile
        The profile of a sample.
    """
    problems: dict[tuple[object, ...], Problem] = {}
    groups: dict[tuple[tuple[object, ...], Run], list[int]] = defaultdict(list)
    for index, sample in enumerate(samples):
        key = _key(sample.problem)
        problems.setdefault(key, sample.problem)
        groups[key, sample.run].append(index)
    found = np.empty(len(samples))
    for (key, run), indices in groups.items():
        model = TimeModel(problems[key], profile(samples[indices[0]]), run=run)
        points = [samples[i].layout.point() for i in indices]
        columns = {n: np.array([p[n] for p in points], np.int64) for n in points[0]}
        found[indices] = model.step_times(columns, simulate=True)
    return found


def _key(problem: Problem) -> tuple[object, ...]:
    """Return what two problems that are projected together have in common."""
    cluster = problem.cluster
    return (
        problem.architecture,
        problem.training,
        cluster.name,
        cluster.device.name,
        cluster.device.hbm_bandwidth,
        cluster.fabric.nic_bandwidth,
        cluster.fabric.scale_up_bandwidth,
    )
