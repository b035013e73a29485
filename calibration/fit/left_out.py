"""Errors on rows that a fit has not seen, at random and by region.

*Random*: the shapes are dealt into folds; each is predicted by a fit of the others.
*Region*: boxes, one octave wide in every coordinate that varies widely, are taken out
together, so that a hole must be bridged; in a small table of collectives each size of
a buffer in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .kernels import fit_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...models.profiles.surfaces.law import Floats, Machine
    from ..rows import Rows
    from .kernels import Form

#: Number of folds, and of boxes taken out together.
FOLDS, BOXES = 4, 100
#: A box is so wide in each coordinate (of its logarithm).
_OCTAVE = float(np.log(2))
_SEED = 20261201


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Predictions of rows that were left out.

    Attributes
    ----------
    rows
        Indices of the rows predicted.
    misses
        Logarithm of measured over predicted time.
    """

    rows: NDArray[np.int64]
    misses: Floats

    @property
    def errors(self) -> Floats:
        """Relative errors |predicted / measured - 1|."""
        return np.abs(np.expm1(-self.misses))


def by_fold(form: Form, machine: Machine, rows: Rows, folds: int, fold: int) -> LeftOut:
    """Predict the rows of one fold from a fit of the others."""
    out = _dealt(rows, folds) == fold
    return LeftOut(np.flatnonzero(out), _misses(form, machine, rows, out))


def _dealt(rows: Rows, folds: int) -> NDArray[np.int64]:
    """Deal shapes, not rows, so that no twin of a row left out is seen."""
    table = np.stack(list(rows.sizes.values()), axis=1)
    shapes, shape = np.unique(table, axis=0, return_inverse=True)
    dealt = np.random.default_rng(_SEED).permutation(len(shapes)) % folds
    return np.asarray(dealt[shape.ravel()], dtype=np.int64)


def by_region(form: Form, machine: Machine, rows: Rows) -> LeftOut:
    """Predict the rows of boxes from a fit without any of the boxes."""
    out = boxes(form, rows)
    return LeftOut(np.flatnonzero(out), _misses(form, machine, rows, out))


def by_value(form: Form, machine: Machine, rows: Rows, size: str) -> LeftOut:
    """Predict the rows of each value of a size, ends excepted, from the others."""
    values = rows.sizes[size]
    found, misses = [], []
    for value in np.unique(values)[1:-1]:
        out = values == value
        found.append(np.flatnonzero(out))
        misses.append(_misses(form, machine, rows, out))
    return LeftOut(np.concatenate(found), np.concatenate(misses))


def boxes(form: Form, rows: Rows) -> NDArray[np.bool_]:
    """Say which rows lie in a box; none touches the edge of the measured range."""
    random = np.random.default_rng(_SEED)
    logs = [np.log(x) for x in form.law.coordinates(rows.sizes).values()]
    # A coordinate of few values (a node count, a ratio of heads) cannot be bridged.
    wide = [np.unique(x) for x in logs if len(np.unique(x)) >= 6]
    columns = [x for x in logs if len(np.unique(x)) >= 6]
    out = np.zeros(len(rows), dtype=bool)
    for _ in range(BOXES):
        inside = np.ones(len(rows), dtype=bool)
        for x, values in zip(columns, wide, strict=True):
            corner = random.uniform(values[1], max(values[-2] - _OCTAVE, values[1]))
            inside &= (x >= corner) & (x < corner + _OCTAVE)
        if inside.mean() < 0.05:
            out |= inside
    return out


def _misses(form: Form, machine: Machine, rows: Rows, out: Any) -> Floats:
    known = fit_kernel(form, machine, rows.at(~out))
    left = rows.at(out)
    time = known.seconds(beyond=True, **left.sizes)
    return np.asarray(np.log(left.seconds / time))


def summary(errors: Floats) -> dict[str, float]:
    """Return count, median and 90th percentile, in percent with two decimals."""
    if not len(errors):
        return {"rows": 0}
    return {
        "rows": len(errors),
        "median": round(100 * float(np.median(errors)), 2),
        "p90": round(100 * float(np.quantile(errors, 0.9)), 2),
    }
