"""A feasible set as one Parquet file: a row a skeleton, its cells as packed bits.

The metadata of the file hold what is the same for every row: the cells, the choices
of flags, the question, and the hash of the set, which is checked on the way in.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ..models.errors import InputError
from ..models.layout import axis_label
from ..solver.feasible_set import FeasibleSet
from ..solver.inner import Cells, Flags
from .document import problem as problem_document

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..models.problem import Problem
    from ..solver.space import Space

_SCHEMA = "shardproof/feasible-parquet-v1"
_META = b"shardproof"


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            "a Parquet file needs pyarrow: pip install 'shardproof[parquet]', or give "
            "--out a folder"
        ) from None
    return pyarrow, parquet


def write_parquet(path: Path, found: FeasibleSet) -> None:
    """Write a set in its factored form.

    Columns are the axes of a skeleton, ``flag_class`` and ``cells``, of which
    ``numpy.unpackbits(numpy.frombuffer(cells, "u1"), count=k)`` tells which of the k
    cells of the metadata belong to the skeleton.

    Raises
    ------
    InputError
        If pyarrow is not installed or the file cannot be written.
    """
    arrow, parquet = _arrow()
    columns = {n: arrow.array(c) for n, c in found.skeletons.items()}
    columns["flag_class"] = arrow.array(found.flags.rows)
    width = found.bits.shape[1]
    cells = arrow.FixedSizeBinaryArray.from_buffers(
        arrow.binary(width),
        len(found.bits),
        [None, arrow.py_buffer(np.ascontiguousarray(found.bits).tobytes())],
    )
    columns["cells"] = cells
    table = arrow.table(columns).replace_schema_metadata({_META: _meta(found)})
    _guarded(path, lambda: parquet.write_table(table, path))


def _meta(found: FeasibleSet) -> str:
    flags = found.flags
    return json.dumps(
        {
            "schema": _SCHEMA,
            "problem": problem_document(found.problem),
            "space": found.space.label,
            "space_hash": found.space.content_hash,
            "engine": found.engine,
            "rules_only": found.rules_only,
            "legal_count": found.legal_count,
            "count": found.count,
            "content_hash": found.content_hash,
            "cell_blocks": [
                {n: c.tolist() for n, c in block.items()}
                for block in found.cells.blocks
            ],
            "flags": {n: c.tolist() for n, c in flags.choices.items()},
            "flag_cells": flags.cells.tolist(),
            "flag_allowed": flags.allowed.astype(int).tolist(),
        }
    )


def read_parquet(path: Path, problem: Problem, space: Space) -> FeasibleSet:
    """Read a set that ``write_parquet`` wrote for this question.

    Raises
    ------
    InputError
        If the file is none, was written for another question, or was changed.
    """
    arrow, parquet = _arrow()
    try:
        table = parquet.read_table(path)
        meta = json.loads((table.schema.metadata or {})[_META])
    except (OSError, KeyError, ValueError, arrow.ArrowException) as error:
        raise InputError(
            f"{path} must be a Parquet file of enumerate --out, got "
            f"{str(error)[:80] or 'another file'}"
        ) from None
    asked = json.loads(json.dumps(problem_document(problem)))
    if (meta["problem"], meta["space_hash"]) != (asked, space.content_hash):
        raise InputError(
            f"{path} holds the set of {meta['space']} for another question: give the "
            "problem and the space that it was written for"
        )
    found = _set(table, meta, problem, space)
    if found.content_hash != meta["content_hash"]:
        raise InputError(f"{path} was changed: its set has another hash than it says")
    return found


def _set(
    table: Any, meta: dict[str, Any], problem: Problem, space: Space
) -> FeasibleSet:
    def column(name: str) -> Any:
        return np.asarray(table.column(name).to_numpy(), np.int64)

    names = [n for n in table.column_names if n not in ("flag_class", "cells")]
    blocks = tuple(
        {n: np.asarray(c, np.int64) for n, c in block.items()}
        for block in meta["cell_blocks"]
    )
    packed = b"".join(table.column("cells").to_pylist())
    cells = Cells(blocks)
    return FeasibleSet(
        problem=problem,
        space=space,
        skeletons={n: column(n) for n in names},
        cells=cells,
        bits=np.frombuffer(packed, np.uint8).reshape(len(table), -(-cells.count // 8)),
        flags=Flags(
            {n: np.asarray(c, np.int64) for n, c in meta["flags"].items()},
            column("flag_class"),
            np.asarray(meta["flag_cells"], np.int64),
            np.asarray(meta["flag_allowed"], bool),
        ),
        legal_count=meta["legal_count"],
        engine=meta["engine"],
        rules_only=meta["rules_only"],
    )


def write_rows(path: Path, found: FeasibleSet, limit: int) -> int:
    """Write one row a configuration, in the user's words, and return their number.

    Parameters
    ----------
    path, found
        The file and the set.
    limit
        Rows to write at most; the first ones of the set are.

    Raises
    ------
    InputError
        If pyarrow is not installed or the file cannot be written.
    """
    arrow, parquet = _arrow()
    schema = arrow.schema([(n, arrow.string()) for n in found.names])
    left = limit

    def write() -> None:
        nonlocal left
        with parquet.ParquetWriter(path, schema) as writer:
            for start in range(len(found.bits)):
                if left <= 0:
                    break
                rows = found.rows(start, start + 1)
                part = {
                    n: [axis_label(n, int(c)) for c in rows[n][:left]]
                    for n in found.names
                }
                writer.write_table(arrow.table(part, schema=schema))
                left -= len(part["tp"])

    _guarded(path, write)
    return limit - left


def _guarded(path: Path, write: Callable[[], None]) -> None:
    try:
        write()
    except OSError as error:
        raise InputError(
            f"--out must be a file that can be written, got {path}: {str(error)[:80]}"
        ) from None
