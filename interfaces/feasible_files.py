"""A feasible set as files: rows for people, arrays for programs."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from ..models.layout import axis_label
from ..solver.domains import bind
from ..solver.peaks import Peaks
from .files import write, write_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ..models.expr import Array
    from ..solver.feasible import FeasibleSet

#: Sets with more rows than this are written as arrays alone.
MOST_ROWS = 1_000_000
_CHUNK = 1024


def write_set(folder: Path, found: FeasibleSet) -> None:
    """Write a set to ``feasible-set.npz``, and as rows if they are not too many.

    The arrays are those of ``FeasibleSet``: ``skeleton_AXIS`` of shape [n],
    ``cell_AXIS`` of shape [k] with the codes of an inner axis in every cell, and
    ``bits``, of which ``numpy.unpackbits(bits, axis=1, count=k)`` tells for each
    skeleton which of the k cells belong to the set. With flags there are
    ``flag_AXIS`` of shape [f], and ``flag_allowed[flag_rows[i], flag_cells[j]]``
    tells which of the f choices cell j of skeleton i has. A row of
    ``feasible-set.csv`` has every axis in the user's words, and the peak in bytes
    unless only rules count.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    arrays: dict[str, Any] = {f"skeleton_{n}": c for n, c in found.skeletons.items()}
    arrays |= {f"cell_{n}": c for n, c in found.inner.items()}
    flags = found.flags
    if flags.choices:
        arrays |= {f"flag_{n}": c for n, c in flags.choices.items()}
        arrays |= {"flag_rows": flags.rows, "flag_cells": flags.cells}
        arrays["flag_allowed"] = flags.allowed
    buffer = io.BytesIO()
    np.savez_compressed(buffer, bits=found.bits, **arrays)
    write_bytes(folder / "feasible-set.npz", (buffer.getvalue(),))
    rows = folder / "feasible-set.csv"
    if found.count <= MOST_ROWS:
        write(rows, lines(found))
    else:
        # Rows of an earlier set beside the arrays of this one would mislead.
        rows.unlink(missing_ok=True)


def lines(found: FeasibleSet) -> Iterator[str]:
    """Yield the set as CSV, line by line, never all rows at once."""
    memory = None if found.rules_only else Peaks(bind(found.problem, found.space))
    names = found.names
    tables = (found.skeletons, found.inner, found.flags.choices)
    labels = {
        name: {int(c): axis_label(name, int(c)) for c in np.unique(codes)}
        for table in tables
        for name, codes in table.items()
    }
    yield ",".join(names if memory is None else [*names, "peak_bytes"]) + "\n"
    for start in range(0, len(found.bits), _CHUNK):
        columns = found.rows(start, start + _CHUNK)
        cells = [[labels[n][c] for c in columns[n].tolist()] for n in names]
        if memory is not None:
            cells.append([str(b) for b in memory.of_columns(columns).tolist()])
        yield "".join(",".join(row) + "\n" for row in zip(*cells, strict=True))


def peaks(found: FeasibleSet, columns: Mapping[str, Sequence[int]]) -> Array:
    """Return the peak over ranks of some configurations of a set, in bytes."""
    arrays = {name: np.asarray(codes, np.int64) for name, codes in columns.items()}
    return Peaks(bind(found.problem, found.space)).of_columns(arrays)
