"""Distinct rows of integer columns, so that shared work is done once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..expr import Array

#: Values up to which a table is cheaper than a sort.
_TABLE = 2**22

Columns = "Mapping[str, Array]"
Rows = np.ndarray[Any, np.dtype[np.int64]]


def distinct(
    columns: Mapping[str, Array], names: Sequence[str]
) -> tuple[dict[str, Array], Rows]:
    """Find the distinct rows of some columns.

    Returns
    -------
    tuple
        The columns of the distinct rows, and for each row which one it is.
    """
    n = len(columns[names[0]])
    key = np.zeros(n, np.int64)
    count = 1
    for name in names:
        values, code = _codes(columns[name])
        if count * len(values) > 2**62:
            count, key = _packed(key)
        key = key * len(values) + code
        count *= len(values)
    number, row = _codes(key)
    first = np.empty(len(number), np.int64)
    first[row[::-1]] = np.arange(n - 1, -1, -1)
    return {name: columns[name][first] for name in names}, row


def _packed(key: Rows) -> tuple[int, Rows]:
    values, code = _codes(key)
    return len(values), code


def _codes(column: Rows) -> tuple[Rows, Rows]:
    """Return the distinct values, ascending, and each row's place among them."""
    if len(column) == 1:
        return column, np.zeros(1, np.int64)
    top = int(column.max())
    if column.min() < 0 or top > min(_TABLE, 16 * len(column) + 1024):
        values, code = np.unique(column, return_inverse=True)
        return values, code.ravel()
    seen = np.zeros(top + 1, bool)
    seen[column] = True
    values = np.flatnonzero(seen)
    place = np.cumsum(seen) - 1
    return values, place[column]


def groups(
    columns: Mapping[str, Array], names: Sequence[str]
) -> Iterator[tuple[tuple[int, ...], Rows]]:
    """Yield each distinct combination of some columns with the rows that have it."""
    found, row = distinct(columns, names)
    order = np.argsort(row, kind="stable")
    ends = np.cumsum(np.bincount(row)).tolist()
    start = 0
    for i, end in enumerate(ends):
        yield tuple(int(found[n][i]) for n in names), order[start:end]
        start = end
