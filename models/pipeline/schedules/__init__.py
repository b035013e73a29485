"""Orders of operations of every known schedule."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ...errors import InputError, unknown_name
from .controllable import v_half, v_min
from .dual_pipe import dual_pipe, dual_pipe_v
from .turns import gpipe, interleaved, one_f_one_b
from .zero_bubble import zb_h1, zb_h2, zbv

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..order import Order

_ONE_CHUNK: dict[str, Callable[[int, int], Order]] = {
    "gpipe": gpipe,
    "1f1b": one_f_one_b,
    "zb-h1": zb_h1,
    "zb-h2": zb_h2,
    "dualpipe": dual_pipe,
}
_TWO_CHUNKS: dict[str, Callable[[int, int], Order]] = {
    "zbv": zbv,
    "v-half": v_half,
    "v-min": v_min,
    "dualpipev": dual_pipe_v,
}
#: Units of all ranks above which an order is not kept: some tens of megabytes.
_KEPT = 200_000
NAMES = (*_ONE_CHUNK, "interleaved", *_TWO_CHUNKS)


def order(
    schedule: str,
    pp: int,
    vpp: int,
    m: int,
    group: int | None = None,
    extra: int = 0,
) -> Order:
    """Return what every rank runs, in order; small orders are kept for the next call.

    Parameters
    ----------
    schedule
        One of ``NAMES``.
    pp, vpp
        Ranks, and chunks a rank. DualPipe has vpp = 1: its two chunks are two
        copies of a stage, one for each direction.
    m
        Micro-batches of a step.
    group
        Micro-batches in a group of the interleaved order; pp if not given.
    extra
        Interleaved: 1 where the expert-parallel all-to-all is overlapped, which
        adds a warm-up unit; else 0.

    Raises
    ------
    InputError
        If the schedule is unknown or cannot run this shape.
    """
    if min(pp, vpp, m, group or pp) < 1:
        raise InputError(
            f"pp, vpp, m and the group must be at least 1, got {pp}, {vpp}, {m}, "
            f"{group or pp}"
        )
    if schedule not in NAMES:
        raise unknown_name("schedule", schedule, NAMES)
    build = _order if pp * vpp * m <= _KEPT else _order.__wrapped__
    return build(schedule, pp, vpp, m, group or pp, extra)


@lru_cache(maxsize=256)
def _order(schedule: str, pp: int, vpp: int, m: int, group: int, extra: int) -> Order:
    if schedule == "interleaved":
        return interleaved(pp, vpp, m, group, extra)
    _check(schedule, pp, vpp, m)
    return {**_ONE_CHUNK, **_TWO_CHUNKS}[schedule](pp, m)


def _check(schedule: str, pp: int, vpp: int, m: int) -> None:
    """Refuse a shape that a schedule is not defined for."""
    wanted = 2 if schedule in _TWO_CHUNKS else 1
    if vpp != wanted:
        raise InputError(f"{schedule} needs vpp = {wanted}, got {vpp}")
    if schedule == "zbv" and m < 2 * pp - 1:
        raise InputError(f"zbv needs m >= 2 pp - 1 = {2 * pp - 1}, got {m}")
    if schedule in ("dualpipe", "dualpipev") and m < 2 * pp:
        raise InputError(f"{schedule} needs m >= 2 pp = {2 * pp}, got {m}")
    if schedule == "dualpipe" and (pp % 2 or m % 2):
        raise InputError(f"dualpipe needs even pp and m, got {pp} and {m}")
