"""How fast configurations are: lower bounds of many, simulated times of few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..models.layout import OPTIONAL
from ..models.profiles import profile_for
from ..models.time import Projections, TimeModel
from .answer import Projection
from .feasible_set import NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from ..models.expr import Array
    from ..models.layout import Layout
    from ..models.problem import Problem

#: More than the rounding of a step time's sums, relative.
_ROUNDING = 1e-12


class Scores:
    """Step times of a problem's configurations under its stack's or device's profile.

    Parameters
    ----------
    problem
        Model, cluster and training.
    """

    def __init__(self, problem: Problem) -> None:
        """Load the profile."""
        self.profile = profile_for(problem)
        self._model = TimeModel(problem, self.profile)

    def bounds(self, columns: Mapping[str, Array]) -> npt.NDArray[np.float64]:
        """Return lower bounds of the simulated step times, shape [n], in seconds."""
        # Sums in another order differ in the last bits; a bound must stay one.
        return self._model.step_times(columns) * (1 - _ROUNDING)

    def simulated(self, layouts: Sequence[Layout]) -> list[Projection]:
        """Return the projections of some layouts, their pipelines simulated."""
        columns = {
            n: np.array([getattr(layout, n) for layout in layouts], np.int64)
            for n in (*NAMES, *OPTIONAL)
        }
        found = self._model.refine(columns)
        return [self._projection(found, i) for i in range(len(layouts))]

    def _projection(self, found: Projections, i: int) -> Projection:
        seconds = float(found.step_time[i])
        return Projection(
            step_time_s=seconds,
            tokens_per_s_per_gpu=float(found.tokens_per_s_per_gpu[i]),
            mfu=float(found.mfu[i]),
            bubble_fraction=float(found.bubble_fraction[i]),
            band=self.profile.interval(seconds),
            breakdown={part: float(s[i]) for part, s in found.breakdown.items()},
        )
