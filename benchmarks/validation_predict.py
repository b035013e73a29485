"""What is predicted of every row of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..models.pipeline.network import DeadlockError
from ..models.time import TimeModel
from .truth import OUT_OF_SCOPE, entries
from .truth.memory import peak_bytes
from .validation_groups import family_of, group_of
from .validation_profiles import profile_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..models.profiles import Profile
    from .truth import Entry, Row, Setting


@dataclass(frozen=True)
class Predicted:
    """A row with its prediction.

    Attributes
    ----------
    entry
        The row, its setting, and the exclusion rules that hold.
    step_time_s, tokens_per_s_per_gpu, peak_bytes
        Predicted; None where a rule or the product leaves the row without.
    band
        Ends of the 90 % interval of the step time, in seconds.
    profile
        Title of the profile, ``uncalibrated`` ones included.
    calibrated
        Whether its factors were fitted to steps of this stack.
    fault
        Why a figure is missing although the row states a layout.
    """

    entry: Entry
    step_time_s: float | None = None
    tokens_per_s_per_gpu: float | None = None
    peak_bytes: int | None = None
    band: tuple[float, float] | None = None
    profile: str = ""
    calibrated: bool = False
    fault: str = ""

    @property
    def error(self) -> float | None:
        """Predicted over measured step time, less 1."""
        one = self.entry.setting
        if one is None or not one.measured.step_time_s or self.step_time_s is None:
            return None
        return self.step_time_s / one.measured.step_time_s - 1

    @property
    def in_scope(self) -> bool:
        """Whether the row can be judged: it has a prediction and a measurement."""
        return self.error is not None and not OUT_OF_SCOPE & set(self.entry.excluded)

    @property
    def kept(self) -> bool:
        """Whether the row is judged."""
        return self.error is not None and not self.entry.excluded

    @property
    def group(self) -> str:
        """Collection of runs that the row belongs to."""
        one = self.entry.setting
        return "" if one is None else group_of(one)

    @property
    def family(self) -> str:
        """Model, without cuts and spellings."""
        return family_of(self.entry.row)


def predict(rows: Sequence[Row], *, memory: bool = True) -> list[Predicted]:
    """Predict every row; none can end the others.

    Parameters
    ----------
    rows
        Rows of one table; rules that compare rows see all of them.
    memory
        Whether to predict peaks too, which takes most of the time.
    """
    return [_predicted(entry, memory) for entry in entries(rows)]


def step_time(one: Setting, profile: Profile) -> float:
    """Return the simulated step time of a setting, in seconds.

    Where the schedule cannot take the number of micro-batches it is the lower bound.
    """
    columns = {n: np.array([v], np.int64) for n, v in one.layout.point().items()}
    model = TimeModel(one.problem, profile, run=one.run)
    try:
        return float(model.step_times(columns, simulate=True)[0])
    except DeadlockError:
        # Micro-batches that the schedule cannot take: a field of the row is wrong.
        return float(model.step_times(columns)[0])


def _predicted(entry: Entry, memory: bool) -> Predicted:
    one = entry.setting
    if one is None:
        return Predicted(entry)
    try:
        profile = profile_for(one)
        seconds = step_time(one, profile)
    except Exception as error:
        # A row of an unknown kind may say anything; it must not end the others.
        return Predicted(entry, fault=str(error) or type(error).__name__)
    peak, fault = _peak(one) if memory else (None, "")
    training, devices = one.problem.training, one.problem.cluster.world_size
    tokens = training.global_batch * training.seq_len
    return Predicted(
        entry=entry,
        step_time_s=seconds,
        tokens_per_s_per_gpu=tokens / (seconds * devices),
        peak_bytes=peak,
        band=profile.interval(seconds),
        profile=profile.name,
        calibrated=profile.layers["stack"].calibrated,
        fault=fault,
    )


def _peak(one: Setting) -> tuple[int | None, str]:
    """Return the peak bytes, or None and why there are none."""
    try:
        return peak_bytes(one.problem, one.layout), ""
    except Exception as error:  # as above
        return None, str(error) or type(error).__name__
