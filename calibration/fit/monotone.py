"""Nearest sequence that never falls: pool adjacent violators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ...models.profiles.surfaces.law import Floats


def rising(values: Floats, axis: int) -> Floats:
    """Return the nearest array (least squares) that does not fall along an axis."""
    lines = np.moveaxis(values, axis, -1)
    found = np.array(lines)
    flat = found.reshape(-1, found.shape[-1])
    for index in np.flatnonzero((np.diff(flat, axis=1) < 0).any(axis=1)):
        flat[index] = _pooled(flat[index])
    return np.moveaxis(flat.reshape(lines.shape), -1, axis)


def _pooled(line: Floats) -> Floats:
    means: list[float] = []
    counts: list[int] = []
    for value in line:
        means.append(float(value))
        counts.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            count = counts[-2] + counts[-1]
            mean = (means[-2] * counts[-2] + means[-1] * counts[-1]) / count
            means[-2:], counts[-2:] = [mean], [count]
    return np.repeat(means, counts)
