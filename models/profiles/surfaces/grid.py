"""A function of a few positive coordinates, linear in their logarithms.

Values stand at knots; between them the function is multilinear, beyond the first and
the last knot it keeps the edge's value. Files hold the values in small steps,
compressed.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from .law import Floats

#: One step of a stored value: half of it is the greatest rounding error.
STEP = 0.01


@dataclass(frozen=True, eq=False)
class Grid:
    """Values at the knots of a few axes.

    Attributes
    ----------
    axes
        Knots of each coordinate, ascending and positive.
    values
        One for each combination of knots, shape (knots of the first axis, ...).
    """

    axes: Mapping[str, Floats]
    values: Floats

    def __post_init__(self) -> None:
        """Check the shape at birth."""
        shape = tuple(len(knots) for knots in self.axes.values())
        if self.values.shape != shape:
            raise InputError(
                f"a grid with knots {shape} needs as many values, got "
                f"{self.values.shape}"
            )
        for name, knots in self.axes.items():
            if len(knots) == 0 or knots[0] <= 0 or (np.diff(knots) <= 0).any():
                raise InputError(
                    f"knots of {name} must be positive and ascending, got {knots}"
                )

    @cached_property
    def _logs(self) -> list[Floats]:
        return [np.log(knots) for knots in self.axes.values()]

    def at(self, coordinates: Mapping[str, Floats]) -> Floats:
        """Return the values at arrays of coordinates, all of one shape."""
        places = [
            place(np.log(coordinates[name]), knots)
            for name, knots in zip(self.axes, self._logs, strict=True)
        ]
        flat = self.values.ravel()
        strides = np.cumprod((1, *self.values.shape[:0:-1]))[::-1]
        total: Floats = np.zeros_like(places[0][1])
        for corner in product((0, 1), repeat=len(places)):
            index: Any = 0
            weight: Any = 1.0
            for bit, (low, share, high), stride in zip(
                corner, places, strides, strict=True
            ):
                index = index + (high if bit else low) * stride
                weight = weight * (share if bit else 1 - share)
            total += flat[index] * weight
        return total

    def document(self, step: float = STEP) -> dict[str, Any]:
        """Return the grid as a file has it, its values in multiples of ``step``."""
        steps = np.rint(self.values / step).astype(np.int64)
        # Differences between neighbours are small and compress well.
        for axis in _differenced(steps.ndim):
            steps = np.diff(steps, axis=axis, prepend=0)
        raw = zlib.compress(steps.astype("<i2").tobytes(), 9)
        return {
            "axes": {
                name: [float(f"{v:.6g}") for v in knots]
                for name, knots in self.axes.items()
            },
            "step": step,
            "values": base64.b85encode(raw).decode(),
        }


def place(
    x: Floats, knots: Floats
) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64]]:
    """Return the knots around each x and the share of the upper one.

    Returns
    -------
    low, high
        Indices of the knots below and above, equal on an axis of one knot.
    share
        Weight of the upper knot, from 0 to 1.
    """
    if len(knots) == 1:
        none = np.zeros(x.shape, dtype=np.int64)
        return none, np.zeros(x.shape), none
    low = np.searchsorted(knots, x, side="right") - 1
    np.clip(low, 0, len(knots) - 2, out=low)
    share = (x - knots[low]) / np.diff(knots)[low]
    return low, np.clip(share, 0.0, 1.0), low + 1


def _differenced(dimensions: int) -> set[int]:
    return {0, dimensions - 1}


def grid_of(document: Any) -> Grid:
    """Read a grid from its document.

    Raises
    ------
    InputError
        If the values do not fit the axes or cannot be unpacked.
    """
    axes = {name: np.array(v, dtype=float) for name, v in document["axes"].items()}
    shape = tuple(len(knots) for knots in axes.values())
    try:
        raw = zlib.decompress(base64.b85decode(document["values"]))
        steps = np.frombuffer(raw, dtype="<i2").reshape(shape).astype(np.int64)
    except (ValueError, zlib.error) as error:
        raise InputError(
            f"the values of a grid with knots {shape} are damaged: {error}"
        ) from error
    for axis in _differenced(len(shape)):
        steps = np.cumsum(steps, axis=axis)
    return Grid(axes, np.asarray(steps * float(document["step"]), dtype=float))
