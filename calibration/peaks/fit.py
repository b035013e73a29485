"""Fit the constants of whole-rank peaks, judged on models that are left out.

Five numbers are fitted: what nanotron holds beside its tensors; two of the allocator
(blocks of the largest temporary that cannot be joined, and a rest), and its ratio with
expandable segments; and how many more rows than balanced ones the experts of a rank
receive. Everything else is counted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: Probabilities at which bands are kept.
PROBABILITIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99)
_MOST = 0.995
_MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Point:
    """One measured peak.

    Attributes
    ----------
    kind
        The band it belongs to.
    model
        Name of the model, the unit that is left out.
    counted
        Bytes predicted without the constant that is fitted.
    temporary
        Bytes of the largest tensor that comes and goes.
    measured
        Bytes measured.
    routed
        Bytes that grow with the routed rows.
    """

    kind: str
    model: str
    counted: int
    temporary: int
    measured: float
    routed: float = 0.0


def offset(points: Sequence[Point]) -> tuple[float, ...]:
    """Return the bytes to add, the median of what is missing."""
    return (float(np.median([p.measured - p.counted for p in points])),)


def ratio(points: Sequence[Point]) -> tuple[float, ...]:
    """Return the factor, the median of measured over counted."""
    return (float(np.median([p.measured / p.counted for p in points])),)


def imbalance(points: Sequence[Point]) -> tuple[float, ...]:
    """Return rows over balanced rows, the median of what is missing."""
    found = [1 + (p.measured - p.counted) / p.routed for p in points if p.routed]
    return (max(1.0, float(np.median(found))) if found else 1.0,)


def blocks(points: Sequence[Point]) -> tuple[float, ...]:
    """Return blocks of the largest temporary, and bytes, by relative least squares."""
    weights = np.array([1 / p.measured for p in points])
    matrix = np.array([[p.temporary, float(_MIB)] for p in points]) * weights[:, None]
    target = np.array([p.measured - p.counted for p in points]) * weights
    found, *_ = np.linalg.lstsq(matrix, target, rcond=None)
    return max(0.0, float(found[0])), max(0.0, float(found[1]) * _MIB)


def apply(law: str, values: tuple[float, ...], point: Point) -> float:
    """Return the bytes that a law with these values predicts of a point."""
    match law:
        case "offset":
            return point.counted + values[0]
        case "ratio":
            return point.counted * values[0]
        case "imbalance":
            return point.counted + (values[0] - 1) * point.routed
        case "blocks":
            return point.counted + values[0] * point.temporary + values[1]
        case _:
            return float(point.counted)


LAWS: dict[str, Callable[[Sequence[Point]], tuple[float, ...]]] = {
    "offset": offset,
    "ratio": ratio,
    "blocks": blocks,
    "imbalance": imbalance,
    "none": lambda points: (),
}


def fit(law: str, points: Sequence[Point]) -> tuple[float, ...]:
    """Return the values of a law fitted to all points."""
    return LAWS[law](points)


def ratios_left_out(law: str, points: Iterable[Point]) -> list[tuple[Point, float]]:
    """Return measured over predicted, each model predicted by a fit without it.

    A law of one model alone is fitted to it all the same, for want of others.
    """
    by_model: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        by_model[point.model].append(point)
    found = []
    for model, held in by_model.items():
        others = [p for m, ps in by_model.items() if m != model for p in ps]
        values = fit(law, others or held)
        found += [(p, p.measured / apply(law, values, p)) for p in held]
    return found


def band(ratios: Sequence[float]) -> list[list[float]]:
    """Return quantiles of measured over predicted, widened for their number.

    The n-th of n values bounds the next one with probability n / (n + 1) alone; where
    a probability asks for more, the extreme is taken as far again from one.
    """
    ordered = np.sort(np.asarray(ratios, dtype=float))
    count = len(ordered)
    found = []
    for probability in (*PROBABILITIES, _MOST):
        place = probability * (count + 1) - 1
        if place < 0:
            value = ordered[0] - abs(1 - ordered[0])
        elif place > count - 1:
            value = ordered[-1] + abs(1 - ordered[-1])
        else:
            value = float(np.interp(place, np.arange(count), ordered))
        found.append([probability, round(float(value), 5)])
    return found


def profile(
    document: dict[str, Any], fits: dict[str, Any], bands: dict[str, Any]
) -> dict[str, Any]:
    """Return the profile with fitted constants and bands put in their places."""
    merged = dict(document)
    merged.update(fits)
    merged["bands"] = {**document.get("bands", {}), **bands}
    return merged
