"""Projections a second on one core: ``shardproof bench projections``.

Over every legal configuration of Llama-3.1-405B on 1,024 H100 (the default space) it
prints how many lower bounds a CPU second gives, how many simulated times, which the
best configurations need, and what one projection with its full breakdown takes.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..models import catalogue
from ..models.problem import Problem, Training
from ..models.profiles import profile_of
from ..models.time import TimeModel
from ..solver.feasible import enumerate_feasible
from ..solver.space import load_space

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: Projections a second, and milliseconds of one with its breakdown.
RATE_BAR, ONE_BAR = 200_000.0, 5.0
_SIMULATED = 20_000


def large_problem() -> Problem:
    """Return Llama-3.1-405B on 1,024 H100 with 8,192 tokens and a batch of 2,048."""
    return Problem(
        architecture=catalogue.architecture("llama-3.1-405b"),
        cluster=catalogue.cluster("128x8:h100"),
        training=Training(seq_len=8192, global_batch=2048),
    )


def _cpu(run: Callable[[], Any], times: int) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def rates(columns: Mapping[str, Any], problem: Problem) -> dict[str, float]:
    """Return projections a CPU second, bounds and simulated, and ms of one."""
    n = len(columns["pp"])
    model = TimeModel(problem, profile_of(problem.cluster.device))
    some = {k: v[:: max(1, n // _SIMULATED)] for k, v in columns.items()}
    first = {k: v[:1] for k, v in columns.items()}
    bounds = _cpu(lambda: model.step_times(columns), 3)
    simulated = _cpu(lambda: model.step_times(some, simulate=True), 2)
    return {
        "configurations": float(n),
        "bounds a second": n / bounds,
        "simulated a second": len(some["pp"]) / simulated,
        "ms of one with breakdown": 1e3 * _cpu(lambda: model.refine(first), 5),
    }


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmark and return its exit code.

    Parameters
    ----------
    words
        The command line, that of the process if absent.
    """
    parser = argparse.ArgumentParser(prog="shardproof bench projections")
    parser.add_argument("--gate", action="store_true", help="exit with 1 if one fails")
    asked = parser.parse_args(words)
    problem = large_problem()
    found = enumerate_feasible(problem, load_space("default"), rules_only=True)
    columns = {k: np.asarray(v) for k, v in found.columns.items()}
    shown = rates(columns, problem)
    for name, value in shown.items():
        print(f"{name:<26}{value:>14,.1f}")
    slow = shown["bounds a second"] < RATE_BAR
    slow = slow or shown["ms of one with breakdown"] > ONE_BAR
    return 1 if asked.gate and slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
