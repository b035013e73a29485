"""ZB-H1, ZB-H2 and ZBV: weight gradients fill what would be idle.

Source: Qi et al. 2023, "Zero Bubble Pipeline Parallelism" (H1 and H2 of section 2,
the V schedule of section 6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..order import order_of, run_b, run_f, run_w
from ..placement import placement

if TYPE_CHECKING:
    from ..order import Order, Slot


def zb_h1(pp: int, m: int) -> Order:
    """1F1B whose rank r runs weight gradients r micro-batches late."""
    ranks = [_delayed(m, warm=pp - 1 - r, late=r) for r in range(pp)]
    return order_of("zb-h1", m, placement("loop", pp, 1), ranks)


def zb_h2(pp: int, m: int) -> Order:
    """Twice ZB-H1's warm-up and delay: as much again in flight, less idle."""
    ranks = [_delayed(m, warm=2 * (pp - 1 - r), late=2 * r) for r in range(pp)]
    return order_of("zb-h2", m, placement("loop", pp, 1), ranks)


def _delayed(m: int, warm: int, late: int) -> list[Slot]:
    """Run ``warm`` forwards, then F and B in turn, each W ``late`` backwards late."""
    warm = min(warm, m)
    slots = [run_f(0, k) for k in range(warm)]
    for j in range(m):
        if warm + j < m:
            slots.append(run_f(0, warm + j))
        slots.append(run_b(0, j))
        if j >= late:
            slots.append(run_w(0, j - late))
    return slots + [run_w(0, j) for j in range(max(m - late, 0), m)]


def zbv(pp: int, m: int) -> Order:
    """Two chunks a rank in a V: every rank holds the same, and only the start idles."""
    ranks = [_v_rank(pp, r, m) for r in range(pp)]
    return order_of("zbv", m, placement("v", pp, 2), ranks)


def _v_rank(pp: int, rank: int, m: int) -> list[Slot]:
    """Fill the V, take turns, and drain it.

    Needs m >= 2 pp - 1. The rank starts 2 (pp - rank) - 1 forwards of its outer
    chunk 0 until the first micro-batch is back, then takes turns of F1 and F0 while
    later ranks turn, then of F1 and full B1 until the first gradient is back. In the
    steady state F0, B0, F1, B1 follow each other, each B with its W. While it
    drains, W waits until no B is left to keep earlier ranks busy.
    """
    rising, turning = 2 * (pp - rank) - 1, pp - rank
    slots = [run_f(0, k) for k in range(rising)]
    for k in range(rank):
        slots += [run_f(1, k), run_f(0, rising + k)]
    for k in range(turning):
        slots += [run_f(1, rank + k), run_b(1, k), run_w(1, k)]
    started = rising + rank  # forwards of chunk 0 so far; chunk 1 has run pp
    for k in range(m - pp):
        if started + k < m:
            slots.append(run_f(0, started + k))
        slots += [run_b(0, k), run_w(0, k)]
        slots += [run_f(1, pp + k), run_b(1, turning + k), run_w(1, turning + k)]
    inner, outer = turning + m - pp, m - pp  # backwards run of chunks 1 and 0
    for k in range(rank):
        slots += [run_b(0, outer + k), run_b(1, inner + k)]
    for k in range(turning):
        slots += [run_b(0, outer + rank + k), run_w(0, outer + k)]
    slots += [run_w(1, k) for k in range(inner, m)]
    return slots + [run_w(0, k) for k in range(outer + turning, m)]
