"""Bands that hold nine times in ten, group by group (conformal prediction).

Misses of left-out rows differ by region, so a constant band would be too wide for most
and too narrow for some. Cells of the coordinates get a typical miss; cells of about
equal typical miss form a group, and the group's band is the quantile of its misses
relative to the typical one, with the correction for a finite number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...models.profiles.surfaces.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ...models.profiles.surfaces.law import Floats

#: Share of rows that a band shall hold.
LEVEL = 0.9
#: One step of a stored half-width.
FINE = 0.002
#: Most cells along a coordinate, rows that a cell shall have, groups of cells, and the
#: weight of the whole in a cell.
_CELLS, _ROWS, _GROUPS, _SHRINK = 10, 8, 8, 8


def fit_band(coordinates: Mapping[str, Floats], misses: Floats) -> Grid:
    """Return the half-width of the band of a logarithm of time, by coordinates."""
    along = round((len(misses) / _ROWS) ** (1 / len(coordinates)))
    cells = min(max(along, 2), _CELLS)
    edges = {name: _edges(values, cells) for name, values in coordinates.items()}
    shape = tuple(len(knots) for knots in edges.values())
    cell = _cells(edges, coordinates, shape)
    typical, own = _typical(cell, np.abs(misses), int(np.prod(shape)))
    order = np.unique(np.quantile(typical[cell], np.linspace(0, 1, _GROUPS + 1)[1:-1]))
    group = np.searchsorted(order, typical)
    widths = np.array(typical)
    whole = _quantile(np.abs(misses) / own)
    for index in range(len(order) + 1):
        member = group[cell] == index
        ratio = np.abs(misses[member]) / own[member]
        widths[group == index] *= _quantile(ratio) if len(ratio) >= 30 else whole
    return Grid(edges, np.round(widths.reshape(shape) / FINE) * FINE)


def coverage(coordinates: Mapping[str, Floats], misses: Floats) -> dict[str, float]:
    """Fit a band on half of the rows and judge it on the other half.

    Returns
    -------
    dict
        ``coverage`` in percent, and ``width``: the median half-width over the median
        miss.
    """
    half = np.random.default_rng(0).permutation(len(misses)) % 2 == 0
    held = {name: values[~half] for name, values in coordinates.items()}
    band = fit_band({n: v[half] for n, v in coordinates.items()}, misses[half])
    width = band.at(held)
    away = np.abs(misses[~half])
    return {
        "coverage": round(100 * float((away <= width).mean()), 1),
        "width": round(float(np.median(width) / max(np.median(away), 1e-9)), 2),
    }


def _edges(values: Floats, cells: int) -> Floats:
    """Return knots such that about equally many rows lie around each."""
    places = np.quantile(np.log(values), np.linspace(0, 1, cells))
    return np.unique(np.array([float(f"{v:.6g}") for v in np.exp(places)]))


def _cells(
    edges: Mapping[str, Floats],
    coordinates: Mapping[str, Floats],
    shape: tuple[int, ...],
) -> NDArray[np.int64]:
    """Return the cell of each row: the nearest knot of every axis."""
    index = []
    for name, knots in edges.items():
        logs = np.log(knots)
        middle = (logs[1:] + logs[:-1]) / 2
        index.append(np.searchsorted(middle, np.log(coordinates[name])))
    return np.asarray(np.ravel_multi_index(index, shape), dtype=np.int64)


def _typical(
    cell: NDArray[np.int64], away: Floats, cells: int
) -> tuple[Floats, Floats]:
    """Return the mean miss of each cell, drawn to the whole where rows are few.

    Returns
    -------
    typical
        Of each cell.
    own
        Of each row's cell without the row itself.
    """
    clipped = np.minimum(away, 4 * np.median(away) + 1e-9)
    count = np.bincount(cell, minlength=cells).astype(float)
    total = np.bincount(cell, weights=clipped, minlength=cells)
    whole = float(clipped.mean())
    summed, weight = total + _SHRINK * whole, count + _SHRINK
    own = (summed[cell] - clipped) / (weight[cell] - 1)
    return np.asarray(summed / weight), np.asarray(own)


def _quantile(ratios: Floats) -> float:
    """Return the quantile that covers LEVEL of the rows still to come."""
    rank = min(int(np.ceil((len(ratios) + 1) * LEVEL)), len(ratios))
    return float(np.sort(ratios)[rank - 1])
