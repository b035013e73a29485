"""CP-SAT under a limit of CPU time, which its own limits do not know."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from ortools.sat.python import cp_model

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, CpSolver, CpSolverStatus

#: Seconds between two looks at the clock.
_LOOK = 0.02


def solve(
    model: CpModel, seconds: float, workers: int
) -> tuple[CpSolver, CpSolverStatus]:
    """Solve a model; return the solver with its answer, and the status.

    Parameters
    ----------
    model
        What is solved.
    seconds
        CPU time of all threads at most, in seconds.
    workers
        Threads of the solver.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers
    solver.parameters.symmetry_level = 0
    solver.parameters.cp_model_probing_level = 0
    # Python's own handler ends the search; CP-SAT's would end it unnoticed.
    solver.parameters.catch_sigint_signal = False
    solver.parameters.max_time_in_seconds = 100 * max(seconds, 0.1)
    over = threading.Event()
    until = time.process_time() + max(seconds, 0.05)

    def watch() -> None:
        while not over.wait(_LOOK):
            if time.process_time() > until:
                solver.stop_search()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return solver, solver.solve(model)
    finally:
        over.set()
        watcher.join()
