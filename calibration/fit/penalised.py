"""A grid's values from scattered points: penalised, robust least squares.

A value may bend and slope along each axis at a price, so that points which disagree
are averaged and knots without points follow their neighbours.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.profiles.surfaces.grid import place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...models.profiles.surfaces.law import Floats

#: A residual beyond this (of a logarithm of time) counts linearly, not squared.
HUBER = 0.03
#: Price of a slope relative to that of a bend, and of a value that no point supports.
_SLOPE, _RIDGE = 0.02, 1e-4
_STEP_RIDGE = 10.0
_ROUNDS = 3


def design(points: Sequence[Floats], knots: Sequence[Floats]) -> Any:
    """Return the sparse weights (points, values) of multilinear interpolation."""
    from scipy.sparse import csr_matrix

    shape = tuple(len(k) for k in knots)
    places = [place(x, k) for x, k in zip(points, knots, strict=True)]
    count = len(points[0])
    columns, weights = [], []
    for corner in product((0, 1), repeat=len(knots)):
        weight = np.ones(count)
        index = []
        for bit, (low, share, high) in zip(corner, places, strict=True):
            index.append(high if bit else low)
            weight = weight * (share if bit else 1 - share)
        columns.append(np.ravel_multi_index(index, shape))
        weights.append(weight)
    rows = np.tile(np.arange(count), len(columns))
    entries = (np.concatenate(weights), (rows, np.concatenate(columns)))
    return csr_matrix(entries, (count, int(np.prod(shape))))


def penalty(knots: Sequence[Floats], prices: Sequence[float]) -> Any:
    """Return the quadratic form of bends and slopes along each axis."""
    from scipy.sparse import csr_matrix, identity, kron

    total: Any = 0
    for axis, price in enumerate(prices):
        factors = [identity(len(k), format="csr") for k in knots]
        factors[axis] = csr_matrix(_roughness(knots[axis]))
        form: Any = factors[0]
        for factor in factors[1:]:
            form = kron(form, factor, format="csr")
        total = total + price * form
    return total


def _roughness(x: Floats) -> Floats:
    """Squares of what a line through both neighbours misses, and of steps."""
    count = len(x)
    bends = np.zeros((max(count - 2, 0), count))
    for i in range(count - 2):
        before, after = x[i + 1] - x[i], x[i + 2] - x[i + 1]
        whole = before + after
        bends[i, i : i + 3] = after / whole, -1.0, before / whole
    slopes = _SLOPE * np.diff(np.eye(count), axis=0)
    rough = np.vstack([bends, slopes])
    return np.asarray(rough.T @ rough)


def solve(
    points: Sequence[Floats],
    targets: Floats,
    knots: Sequence[Floats],
    prices: Sequence[float],
    steps: Floats | None = None,
) -> tuple[Floats, Floats | None]:
    """Fit the values at the knots, and the weights of covariates.

    Parameters
    ----------
    points, knots
        Coordinates of the points and knots by axis, in one scale.
    targets
        What the grid and the covariates shall sum to at the points.
    prices
        Of roughness along each axis.
    steps
        Covariates, shape (points, covariates).

    Returns
    -------
    values
        At the knots, shape (knots of the first axis, ...).
    weights
        Of the covariates, None without them.
    """
    from scipy.sparse import block_diag, csr_matrix, diags, hstack, identity
    from scipy.sparse.linalg import cg

    matrix = design(points, knots)
    count = matrix.shape[1]
    form = penalty(knots, prices) + _RIDGE * identity(count)
    if steps is not None:
        matrix = hstack([matrix, csr_matrix(steps)]).tocsr()
        form = block_diag([form, _STEP_RIDGE * identity(steps.shape[1])]).tocsr()
    found = None
    weight = np.ones(len(targets))
    for _ in range(_ROUNDS):
        normal = (matrix.T @ diags(weight) @ matrix + form).tocsr()
        scale = diags(1 / normal.diagonal())
        right = matrix.T @ (weight * targets)
        found, _ = cg(normal, right, x0=found, M=scale, rtol=1e-5, maxiter=300)
        missed = np.abs(targets - matrix @ found)
        weight = 1 / np.maximum(1.0, missed / HUBER)
    assert found is not None
    values = found[:count].reshape(tuple(len(k) for k in knots))
    return values, (found[count:] if steps is not None else None)
