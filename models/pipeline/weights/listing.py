"""A quick order within memory: every rank runs what it can, backwards first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..order import order_of, run_b, run_f, run_w
from ..placement import placement

if TYPE_CHECKING:
    from ..order import Order, Slot
    from .task import WeightTask

_NEVER = float("inf")


def list_schedule(task: WeightTask, patience: float) -> Order:
    """Take the operation that can start first, on whichever rank, until all ran.

    A rank prefers its backward to its forward. It runs a weight gradient where
    nothing else can start within ``patience`` times the weight gradient's length,
    or where a forward needs the memory.

    Parameters
    ----------
    task
        What to run, and within what.
    patience
        0 fills every pause; 1 leaves those that a weight gradient would overrun.
    """
    state = _State(task, patience)
    while True:
        starts = [state.choice(rank) for rank in range(task.pp)]
        rank = min(range(task.pp), key=lambda r: starts[r])
        when, preference = starts[rank]
        if when == _NEVER:
            break
        state.run(rank, "BFW"[preference], when)
    ranks = state.slots
    return order_of("ilp", task.m, placement("loop", task.pp, 1), ranks)


class _State:
    """How far every rank is."""

    def __init__(self, task: WeightTask, patience: float) -> None:
        self.task, self.patience = task, patience
        self.slots: list[list[Slot]] = [[] for _ in range(task.pp)]
        self.done = {kind: [0] * task.pp for kind in "FBW"}
        self.ended: dict[tuple[str, int, int], float] = {}
        self.free = [0.0] * task.pp
        self.took = {"F": task.forward, "B": task.backward, "W": task.weight}

    def choice(self, rank: int) -> tuple[float, int]:
        """Return when the rank's next operation can start, and its preference."""
        options = [
            (self._ready("B", rank), 0),
            (self._ready("F", rank) if self._room(rank) else _NEVER, 1),
        ]
        best = min(options)
        if self.done["W"][rank] < self.done["B"][rank]:
            overrun = self.free[rank] + self.patience * float(self.took["W"][rank])
            if best[0] >= overrun and best[0] > self.free[rank]:
                return self.free[rank], 2
        return best

    def run(self, rank: int, kind: str, when: float) -> None:
        """Run an operation on a rank."""
        k = self.done[kind][rank]
        self.done[kind][rank] += 1
        self.free[rank] = self.ended[kind, rank, k] = when + float(
            self.took[kind][rank]
        )
        self.slots[rank].append({"F": run_f, "B": run_b, "W": run_w}[kind](0, k))

    def _ready(self, kind: str, rank: int) -> float:
        """Return when the rank's next forward or backward can start."""
        k = self.done[kind][rank]
        if k == self.task.m:
            return _NEVER
        source = rank - 1 if kind == "F" else rank + 1
        arrives = 0.0
        if 0 <= source < self.task.pp:
            arrives = self.ended.get((kind, source, k), _NEVER) + self.task.p2p
        elif kind == "B":
            arrives = self.ended.get(("F", rank, k), _NEVER)
        return max(self.free[rank], arrives)

    def _room(self, rank: int) -> bool:
        """Whether one more forward fits into the rank's memory."""
        f, b, w = (self.done[kind][rank] for kind in "FBW")
        full, kept = int(self.task.full[rank]), int(self.task.w_only[rank])
        # Backwards turn full states into W-only ones, which may weigh more.
        worst = max(full, kept)
        held = (f - b) * worst + (b - w) * kept
        return held + worst <= int(self.task.limit[rank])
