"""DualPipe and DualPipeV: forwards overlapped with backwards of other micro-batches.

Sources: the DeepSeek-V3 technical report (arXiv 2412.19437, section 3.2.1) and the
steps written down in its repository (deepseek-ai/DualPipe).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..order import order_of, run_b, run_bw, run_f, run_pair, run_w
from ..placement import placement

if TYPE_CHECKING:
    from ..order import Order, Slot


def dual_pipe(pp: int, m: int) -> Order:
    """Half the micro-batches enter at each end; every rank holds two stages.

    Needs pp even, m even and m >= 2 pp.
    """
    ranks = []
    for rank in range(pp):
        inner = min(rank, pp - 1 - rank)
        near = int(rank >= pp // 2)  # the direction whose input is nearer
        ranks.append(_rank_slots(pp // 2, inner, m // 2, near))
    return order_of("dualpipe", m, placement("bidirectional", pp, 2), ranks)


def dual_pipe_v(pp: int, m: int) -> Order:
    """The half of DualPipe's ranks folded into a V: one copy of the parameters.

    Needs m >= 2 pp.
    """
    ranks = [_rank_slots(pp, rank, m, 0) for rank in range(pp)]
    return order_of("dualpipev", m, placement("v", pp, 2), ranks)


def _rank_slots(depth: int, inner: int, micros: int, near: int) -> list[Slot]:
    """Run the eight steps of one rank.

    Parameters
    ----------
    depth
        Ranks from an end to the turn.
    inner
        Ranks between this one and its end.
    micros
        Micro-batches of each chunk.
    near, far
        Chunk that micro-batches reach first, and the other one.
    """
    far = 1 - near
    rank = _Rank()
    rest = depth - 1 - inner
    for _ in range(2 * rest):
        rank.forward(near)
    for _ in range(inner + 1):
        rank.forward(near)
        rank.forward(far)
    for _ in range(rest):
        rank.backward(far, split=True)
        rank.weight()
        rank.forward(far)
    for i in range(micros - 2 * depth + inner + 1):
        if i == 0 and rest == 0:
            # At the turn the first two would wait for each other if overlapped.
            rank.forward(near)
            rank.backward(far)
        else:
            rank.overlapped(near, far)
        rank.overlapped(far, near)
    for _ in range(rest):
        rank.backward(far)
        rank.overlapped(far, near)
    # From the middle of this step on weight gradients wait, so that the input
    # gradients reach the other ranks sooner.
    for i in range(2 * (inner + 1)):
        rank.backward(near if i % 2 else far, split=i > inner)
    for _ in range(rest):
        rank.weight()
        rank.backward(near, split=True)
    for _ in range(inner + 1):
        rank.weight()
    return rank.slots


class _Rank:
    """Slots of one rank, counting micro-batches chunk by chunk."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self._forwards = [0, 0]
        self._backwards = [0, 0]
        self._waiting: list[tuple[int, int]] = []

    def _next(self, counts: list[int], chunk: int) -> tuple[int, int]:
        counts[chunk] += 1
        return chunk, counts[chunk] - 1

    def forward(self, chunk: int) -> None:
        self.slots.append(run_f(*self._next(self._forwards, chunk)))

    def backward(self, chunk: int, split: bool = False) -> None:
        unit = self._next(self._backwards, chunk)
        if split:
            self._waiting.append(unit)
        self.slots.append(run_b(*unit) if split else run_bw(*unit))

    def overlapped(self, forward: int, backward: int) -> None:
        ahead = self._next(self._forwards, forward)
        back = self._next(self._backwards, backward)
        self.slots.append(run_pair(ahead, back))

    def weight(self) -> None:
        self.slots.append(run_w(*self._waiting.pop(0)))
