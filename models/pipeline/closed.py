"""Closed forms of the step time where all stages take the same time.

Letters: p ranks, v chunks a rank, m micro-batches, g micro-batches of a group; F, B
and W seconds of one chunk's forward, input-gradient and weight-gradient backward, h
seconds of a hop, D seconds of an overlapped pair. Each form is given where it is
exact, and only there.

| schedule | step time | where |
|---|---|---|
| gpipe | (m + p - 1)(F + B + W) + 2 (p - 1) h | always |
| 1f1b | (m + p - 1)(F + B + W) + 2 h N, | always |
| | N = (p - 1)(1 + q) + max(0, s - 1), m - 1 = q p + s | |
| interleaved | (m v + p - 1)(F + B + W) + 2 (p v - 1) h | m mod g is 0 or at least p; |
| | | p <= g <= m; h = 0, or g = p |
| | | and h <= min(F, B + W) |
| zb-h1 | m (F + B + W) + (p - 1)(F + B - W) | W <= F, W <= B, m >= p, h = 0 |
| zb-h2 | m (F + B + W) + (p - 1) F | W <= F or B <= F; B <= 2 W, |
| | | m >= 2 p - 1, h = 0 |
| zbv | 2 m (F + B + W) + (p - 1) F | F = B, W <= B <= 2 W, h = 0 |
| v-half | (6 m + 3 p - 7) F, p odd: (6 m + 3 p - 4) F | F = B = W, p >= 4, |
| | | m >= 2 p, h = 0 |
| v-min | (6 m + 4 p - 5) F, and 1 F or 2 F less for | F = B = W, p >= 4, |
| | p mod 3 = 2 or 0 | m >= 2 p, h = 0 |
| dualpipe | (p + 1)(F + B + W) + (m - p - 1) D | F = B, W <= B, |
| | + (p / 2 - 1)(D + B - 2 W) | D >= F + B, h = 0 |
| dualpipev | (2 p + 1)(F + B + W) + (2 m - 2 p - 1) D | F = B, W <= B, |
| | + (p - 1)(D + B - 2 W) | D >= F + B, h = 0 |

Sources: the papers named at each schedule; the hops of 1F1B and of interleaved 1F1B
and all conditions are this project's own, held by its tests to the simulation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from .arrays import Bools, Floats, Ints

    Form = Callable[["_Equal"], tuple[Floats, Bools]]


class _Equal(NamedTuple):
    """Equal stages: the letters of this module."""

    p: int
    v: int
    g: int
    m: Ints
    f: Floats
    b: Floats
    w: Floats
    h: Floats
    d: Floats

    @property
    def work(self) -> Floats:
        """All of one chunk's passes for one micro-batch."""
        total: Floats = self.f + self.b + self.w
        return total


def closed_form(
    schedule: str,
    pp: int,
    vpp: int,
    m: Ints | int,
    forward: Floats | float,
    backward: Floats | float,
    weight: Floats | float = 0.0,
    p2p: Floats | float = 0.0,
    pair: Floats | float | None = None,
    group: int | None = None,
) -> Floats:
    """Return the step time of equal stages, NaN where no exact form is known.

    Parameters
    ----------
    m
        Micro-batches; this and all times have shape [n] or are one number.
    forward, backward, weight
        Times of one chunk for one micro-batch, in seconds. Where a schedule does
        not split the backward, ``backward`` may hold all of it.
    p2p
        Time of one hop, in seconds.
    pair
        Time of an overlapped forward and full backward, in seconds; their sum if
        not given.
    group
        Micro-batches in a group of the interleaved order; pp if not given.

    Returns
    -------
    Array
        Shape [n], in seconds.

    Raises
    ------
    InputError
        If the schedule is unknown.
    """
    if schedule not in _FORMS:
        raise unknown_name("schedule", schedule, _FORMS)
    m, f, b, w, h = np.broadcast_arrays(
        np.atleast_1d(m), forward, backward, weight, p2p
    )
    d = f + b + w if pair is None else np.broadcast_to(pair, f.shape)
    equal = _Equal(pp, vpp, group or pp, m, f, b, w, h, d)
    step_time, exact = _FORMS[schedule](equal)
    return np.where(exact, step_time, np.nan)


def _gpipe(x: _Equal) -> tuple[Floats, Bools]:
    return (x.m + x.p - 1) * x.work + 2 * (x.p - 1) * x.h, x.m >= 1


def _one_f_one_b(x: _Equal) -> tuple[Floats, Bools]:
    """Every p micro-batches one waits for a way to the loss and back."""
    loops, rest = np.divmod(x.m - 1, x.p)
    hops = (x.p - 1) * (1 + loops) + np.maximum(rest - 1, 0)
    return (x.m + x.p - 1) * x.work + 2 * x.h * hops, x.m >= 1


def _interleaved(x: _Equal) -> tuple[Floats, Bools]:
    rest = x.m % x.g
    fills = ((rest == 0) | (rest >= x.p)) & (x.g >= x.p) & (x.g <= x.m)
    hidden = (x.h == 0) | ((x.g == x.p) & (x.h <= np.minimum(x.f, x.b + x.w)))
    path = 2 * (x.p * x.v - 1) * x.h
    return (x.m * x.v + x.p - 1) * x.work + path, fills & hidden


def _zb_h1(x: _Equal) -> tuple[Floats, Bools]:
    idle = (x.p - 1) * (x.f + x.b - x.w)
    exact = (x.w <= x.f) & (x.w <= x.b) & (x.m >= x.p) & (x.h == 0)
    return x.m * x.work + idle, exact


def _zb_h2(x: _Equal) -> tuple[Floats, Bools]:
    filled = ((x.w <= x.f) | (x.b <= x.f)) & (x.b <= 2 * x.w)
    exact = filled & (x.m >= 2 * x.p - 1) & (x.h == 0)
    return x.m * x.work + (x.p - 1) * x.f, exact


def _zbv(x: _Equal) -> tuple[Floats, Bools]:
    filled = (x.f == x.b) & (x.w <= x.b) & (x.b <= 2 * x.w)
    exact = filled & (x.m >= 2 * x.p - 1) & (x.h == 0)
    return 2 * x.m * x.work + (x.p - 1) * x.f, exact


def _v_half(x: _Equal) -> tuple[Floats, Bools]:
    return (6 * x.m + 3 * x.p - (4 if x.p % 2 else 7)) * x.f, _unit_times(x)


def _v_min(x: _Equal) -> tuple[Floats, Bools]:
    less = {1: 5, 2: 6, 0: 7}[x.p % 3]
    return (6 * x.m + 4 * x.p - less) * x.f, _unit_times(x)


def _unit_times(x: _Equal) -> Bools:
    equal: Bools = (x.f == x.b) & (x.b == x.w) & (x.m >= 2 * x.p) & (x.h == 0)
    return equal & (x.p >= 4)


def _dual_pipe(x: _Equal) -> tuple[Floats, Bools]:
    apart = (x.p + 1) * x.work
    idle = (x.p // 2 - 1) * (x.d + x.b - 2 * x.w)
    return apart + (x.m - x.p - 1) * x.d + idle, _overlaps(x)


def _dual_pipe_v(x: _Equal) -> tuple[Floats, Bools]:
    apart = (2 * x.p + 1) * x.work
    idle = (x.p - 1) * (x.d + x.b - 2 * x.w)
    return apart + (2 * x.m - 2 * x.p - 1) * x.d + idle, _overlaps(x)


def _overlaps(x: _Equal) -> Bools:
    times = (x.f == x.b) & (x.w <= x.b) & (x.d >= x.f + x.b)
    exact: Bools = times & (x.m >= 2 * x.p) & (x.h == 0)
    return exact


_FORMS: dict[str, Form] = {
    "gpipe": _gpipe,
    "1f1b": _one_f_one_b,
    "interleaved": _interleaved,
    "zb-h1": _zb_h1,
    "zb-h2": _zb_h2,
    "zbv": _zbv,
    "v-half": _v_half,
    "v-min": _v_min,
    "dualpipe": _dual_pipe,
    "dualpipev": _dual_pipe_v,
}
