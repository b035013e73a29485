"""What a row measured, in one unit, whichever figure its source prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...models.time import model_flops
from ...models.units import GIB

if TYPE_CHECKING:
    from ...models.problem import Problem
    from .row import Row


@dataclass(frozen=True)
class Measured:
    """Published figures of one run.

    Attributes
    ----------
    step_time_s
        Seconds of a step, None where nothing is published to derive it from.
    derived_from
        The column it comes from.
    peak_bytes
        The memory figure of the source, whichever statistic it is; None if blank.
    disagrees
        Whether step time and throughput of the row differ by more than 2 %.
    """

    step_time_s: float | None
    derived_from: str
    peak_bytes: float | None
    disagrees: bool


def measured(row: Row, problem: Problem) -> Measured:
    """Return what a row measured.

    Parameters
    ----------
    row
        The row.
    problem
        What it ran, from which throughput becomes a step time.

    Notes
    -----
    Published FLOP/s and MFU count the masked half of attention, as the formula of
    Narayanan et al. 2021 does; where the source's formula includes the recomputed
    forward, a quarter of it is taken off.
    """
    training, devices = problem.training, problem.cluster.world_size
    tokens = training.global_batch * training.seq_len / devices
    stated = row.number("step_time_s")
    speed = row.number("tokens_per_s_per_gpu")
    by_speed = tokens / speed if speed else None
    memory = row.number("memory_gb")
    found, column = stated, "step_time_s"
    if found is None:
        found, column = by_speed, "tokens_per_s_per_gpu"
    if found is None:
        found, column = _from_flops(row, problem)
    disagrees = bool(stated and by_speed and abs(stated / by_speed - 1) > 0.02)
    return Measured(found, column, memory and memory * GIB, disagrees)


def _from_flops(row: Row, problem: Problem) -> tuple[float | None, str]:
    training, cluster = problem.training, problem.cluster
    flops = model_flops(
        problem.architecture, training.seq_len, training.global_batch, causal=False
    )
    if rate := row.number("tflops_per_gpu"):
        again = 4 / 3 if "includes full rec" in row.words("extras") else 1.0
        return flops * again / (cluster.world_size * rate * 1e12), "tflops_per_gpu"
    if share := row.number("mfu"):
        peak = cluster.device.peak_flops[training.precision]
        return flops / (cluster.world_size * share * peak), "mfu"
    return None, ""
