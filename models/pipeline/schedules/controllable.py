"""V-half and V-min: half or a third of the memory, for some idle time.

Every micro-batch repeats one pattern, six unit times after the one before; weight
gradients take what the pattern leaves free. Then operations move earlier where
memory allows: first all of them, weight gradients included; then, with weight
gradients placed anew, those after the last micro-batch has started.

Source: Qi et al. 2024, "Pipeline Parallelism with Controllable Memory" (the
building blocks of V-Half and V-Min).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..order import order_of, run_b, run_f, run_w
from ..placement import placement

if TYPE_CHECKING:
    from ..arrays import Ints
    from ..order import Order, Slot

#: Operations of a micro-batch on a rank, in the order of the pattern: forward of
#: chunks 0 and 1, backward of chunks 1 and 0; then the weight gradients.
_F0, _F1, _B1, _B0, _W = range(5)
_PERIOD = 6
_FREE = -1

#: Unit times of one kind of operation on one rank, in the order they run.
Row = list[list[int]]


def v_half(pp: int, m: int) -> Order:
    """Two chunks a rank in a V, pp + 2 chunks held at the peak (pp + 1 if odd)."""
    shift = 3 if pp % 2 == 0 else 0
    pattern = [
        (2 * r, 3 * pp - 2 - r, 3 * pp - 1 + shift + 2 * r, 6 * pp - 2 + shift - r)
        for r in range(pp)
    ]
    return _tightened("v-half", pp, m, pattern)


def v_min(pp: int, m: int) -> Order:
    """Two chunks a rank in a V, 2 ceil((pp + 2) / 3) chunks held at the peak."""
    shift = 2 if pp % 3 == 0 else 0
    pattern = [
        (r, 2 * pp - 1 - r, 2 * pp + shift + r, 4 * pp - 1 + shift - r)
        for r in range(pp)
    ]
    return _tightened("v-min", pp, m, pattern)


def _tightened(
    schedule: str, pp: int, m: int, pattern: list[tuple[int, int, int, int]]
) -> Order:
    """Repeat the pattern, move operations earlier, and read off the order."""
    rows: list[Row] = [
        [[start + _PERIOD * k for k in range(m)] for start in starts]
        for starts in pattern
    ]
    for row in rows:
        row.append(_weight_times(row))
    _move_earlier(rows, since=0)
    rows = [row[:_W] for row in rows]
    _move_earlier(rows, since=rows[0][_F0][-1] + 1)
    ranks = [_slots([*row, _weight_times(row)]) for row in rows]
    return order_of(schedule, m, placement("v", pp, 2), ranks)


def _weight_times(row: Row) -> list[int]:
    """Let each weight gradient take the first free time after its backward."""
    kind = {t: k for k in range(_W) for t in row[k]}
    times: list[int] = []
    waiting, now = 0, 0
    while len(times) < len(row[_B1]) + len(row[_B0]):
        if now in kind:
            waiting += kind[now] in (_B1, _B0)
        elif waiting:
            times.append(now)
            waiting -= 1
        now += 1
    return times


def _move_earlier(rows: list[Row], since: int) -> None:
    """Move each operation from ``since`` on to its first free time, in order.

    No rank may come to hold more than the most that any holds now. Without weight
    gradients in the rows they are taken to run as soon as a time is free.
    """
    end = 1 + max(t for row in rows for times in row for t in times)
    busy = np.full((len(rows), end), _FREE, np.int64)
    for rank, row in enumerate(rows):
        for kind, times in enumerate(row):
            busy[rank, times] = kind
    peak = _peak_with_weights if len(rows[0]) > _W else _peak_filling
    limit = max(peak(line) for line in busy)
    for time, rank, kind, k in sorted(
        (t, rank, kind, k)
        for rank, row in enumerate(rows)
        for kind, times in enumerate(row)
        for k, t in enumerate(times)
        if t >= since
    ):
        line = busy[rank]
        line[time] = _FREE
        earliest = 1 + _ready(rows, rank, kind, k)
        for t in (earliest + np.flatnonzero(line[earliest:time] == _FREE)).tolist():
            line[t] = kind
            if peak(line) <= limit:
                rows[rank][kind][k] = t
                break
            line[t] = _FREE
        line[rows[rank][kind][k]] = kind


def _ready(rows: list[Row], rank: int, kind: int, k: int) -> int:
    """Return the last time at which something runs that the operation follows."""
    row = rows[rank]
    after = [-1]
    if kind in (_F0, _B1) and rank > 0:
        after.append(rows[rank - 1][kind][k])
    if kind in (_F1, _B0) and rank + 1 < len(rows):
        after.append(rows[rank + 1][kind][k])
    if _F0 < kind < _W:
        after.append(row[kind - 1][k])
    if kind == _W:
        after.append(sorted(row[_B1] + row[_B0])[k])
    if k > 0:
        after.append(row[kind][k - 1])
    return max(after)


def _peak_with_weights(line: Ints) -> int:
    """Return the most chunks held, each from its forward to its weight gradient."""
    forward = (line == _F0) | (line == _F1)
    held = np.cumsum(forward) - np.cumsum(line == _W)
    return int(held.max())


def _peak_filling(line: Ints) -> int:
    """Return the same where every free time runs a waiting weight gradient."""
    forward = np.cumsum((line == _F0) | (line == _F1))
    backward = np.cumsum((line == _B1) | (line == _B0))
    free = np.cumsum(line == _FREE)
    # A queue served one a free time: served = free - what was lost while empty.
    served = free + np.minimum(np.minimum.accumulate(backward - free), 0)
    return int((forward - served).max())


def _slots(row: Row) -> list[Slot]:
    """Sort a rank's operations by time; weight gradients follow their backwards."""
    in_time = sorted(
        (t, kind, k) for kind, ts in enumerate(row) for k, t in enumerate(ts)
    )
    backwards = [(_B0 - kind, k) for _, kind, k in in_time if kind in (_B1, _B0)]
    slots = []
    for _, kind, k in in_time:
        if kind in (_F0, _F1):
            slots.append(run_f(kind, k))
        elif kind == _W:
            slots.append(run_w(*backwards[k]))
        else:
            slots.append(run_b(_B0 - kind, k))
    return slots
