"""The CP-SAT model of weight gradients placed within memory."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from ..network import DeadlockError
from ..order import order_of, run_b, run_f, run_w
from ..placement import placement

if TYPE_CHECKING:
    from ..order import Order, Slot
    from .task import WeightTask


class WeightModel:
    """The CP-SAT model: intervals, dependencies, memory, makespan."""

    def __init__(self, task: WeightTask, horizon: float) -> None:
        """Build the model; no step may take longer than ``horizon`` seconds."""
        from ortools.sat.python import cp_model

        self.task, self.cp = task, cp_model
        self.model = cp_model.CpModel()
        times = {"F": task.forward, "B": task.backward, "W": task.weight}
        self.took = {
            (kind, r): int(seconds[r] / task.unit)
            for kind, seconds in times.items()
            for r in range(task.pp)
        }
        self.hop = int(task.p2p / task.unit)
        per_rank = [sum(self.took[kind, r] for kind in "FBW") for r in range(task.pp)]
        # Rounded-down times cannot take longer than the incumbent does.
        self.horizon = int(horizon / task.unit) + 1
        self.start: dict[tuple[str, int, int], Any] = {}
        self.makespan = self.model.new_int_var(0, self.horizon, "makespan")
        self._add_operations()
        self._add_dependencies()
        self._add_memory()
        self._add_makespan(per_rank)

    def _end(self, kind: str, rank: int, k: int) -> Any:
        return self.start[kind, rank, k] + self.took[kind, rank]

    def _add_operations(self) -> None:
        """A rank runs one operation at a time, micro-batches in order."""
        for r in range(self.task.pp):
            intervals = []
            for kind in "FBW":
                for k in range(self.task.m):
                    var = self.model.new_int_var(0, self.horizon, f"{kind}{r}.{k}")
                    self.start[kind, r, k] = var
                    intervals.append(
                        self.model.new_fixed_size_interval_var(
                            var, self.took[kind, r], f"run {kind}{r}.{k}"
                        )
                    )
                    if k:
                        self.model.add(var >= self._end(kind, r, k - 1))
            self.model.add_no_overlap(intervals)

    def _add_dependencies(self) -> None:
        """F follows the F before it, B the F and the B after it, W its B."""
        for r in range(self.task.pp):
            for k in range(self.task.m):
                f, b, w = (self.start[kind, r, k] for kind in "FBW")
                if r:
                    self.model.add(f >= self._end("F", r - 1, k) + self.hop)
                if r + 1 < self.task.pp:
                    self.model.add(b >= self._end("B", r + 1, k) + self.hop)
                self.model.add(b >= self._end("F", r, k))
                self.model.add(w >= self._end("B", r, k))

    def _add_memory(self) -> None:
        """What is held between operations takes of the rank's limit."""
        for r in range(self.task.pp):
            full, kept, limit = self._sizes(r)
            intervals, demands = [], []
            for k in range(self.task.m):
                forth, back = self.start["F", r, k], self._end("B", r, k)
                intervals.append(self._held(forth, back, f"full {r}.{k}"))
                end = self._end("W", r, k)
                intervals.append(self._held(back, end, f"kept {r}.{k}"))
                demands += [full, kept]
            self.model.add_cumulative(intervals, demands, limit)

    def _held(self, first: Any, last: Any, name: str) -> Any:
        length = self.model.new_int_var(0, self.horizon, f"length {name}")
        return self.model.new_interval_var(first, length, last, name)

    def _sizes(self, rank: int) -> tuple[int, int, int]:
        """Return full, W-only and limit in the largest unit that divides the sizes."""
        task = self.task
        full, kept, limit = (int(x[rank]) for x in (task.full, task.w_only, task.limit))
        unit = gcd(full, kept) or 1
        return full // unit, kept // unit, limit // unit

    def _add_makespan(self, per_rank: list[int]) -> None:
        """The step ends with the last W, and no rank ends before its work is done."""
        before, task = 0, self.task
        for r in range(self.task.pp):
            # Bytes times time: each micro-batch is held for the way to the loss and
            # back at least, and for its weight gradient.
            away = sum(self.took[kind, s] for kind in "FB" for s in range(r, task.pp))
            away += 2 * (task.pp - 1 - r) * self.hop
            full, kept, limit = self._sizes(r)
            held = away * full + self.took["W", r] * kept
            self.model.add(self.makespan * limit >= task.m * held)
            self.model.add(self.makespan >= self._end("W", r, self.task.m - 1))
            self.model.add(self.makespan >= before + self.task.m * per_rank[r])
            before += self.took["F", r] + self.hop
        self.model.minimize(self.makespan)

    def solve(
        self, hint: dict[tuple[str, int, int], float], seconds: float
    ) -> tuple[Order | None, float]:
        """Search from a hint; return the best order and the bound in seconds."""
        for key, time in hint.items():
            self.model.add_hint(self.start[key], int(time / self.task.unit))
        solver = self.cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = seconds
        status = solver.solve(self.model)
        bound = solver.best_objective_bound * self.task.unit
        if status not in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            return None, max(bound, 0.0)
        make = {"F": run_f, "B": run_b, "W": run_w}
        ranks = []
        for r in range(self.task.pp):
            # Operations of no length can start together: then F, B, W in turn.
            timed = sorted(
                (solver.value(self.start[kind, r, k]), k, "FBW".index(kind), kind)
                for kind in "FBW"
                for k in range(self.task.m)
            )
            ranks.append([make[kind](0, k) for _, k, _, kind in timed])
        return self._joined(ranks), bound

    def _joined(self, ranks: list[list[Slot]]) -> Order | None:
        """Make an order of the solution unless rounding has tied it up."""
        order = order_of("ilp", self.task.m, placement("loop", self.task.pp, 1), ranks)
        try:
            self.task.makespan(order)
        except DeadlockError:
            return None
        return order if self.task.fits(order) else None
