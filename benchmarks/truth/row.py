"""A row of the table of published runs, as its source has it.

Columns: id, source, the architecture, the machine, framework and precision, the
layout, what was measured (``tokens_per_s_per_gpu``, ``tflops_per_gpu``, ``mfu``,
``hfu``, ``step_time_s``, ``memory_gb`` in GiB), ``oom``, and text. Empty is not stated.
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...models.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


@dataclass(frozen=True)
class Row:
    """One published run.

    Attributes
    ----------
    values
        Text by column; columns that the table lacks read as empty.
    """

    values: Mapping[str, str]

    @property
    def id(self) -> str:
        """Name of the row, unique within its table."""
        return self.text("id")

    @property
    def file(self) -> str:
        """Collection that the row belongs to, empty if the table names none."""
        return self.text("file")

    def text(self, column: str) -> str:
        """Return a column as text."""
        return (self.values.get(column) or "").strip()

    def words(self, *columns: str) -> str:
        """Return columns joined, in lower case, to search in."""
        return " ".join(self.text(column) for column in columns).lower()

    def number(self, column: str) -> float | None:
        """Return a column as a positive finite number, None if it is not one."""
        try:
            found = float(self.text(column).replace(",", ""))
        except ValueError:
            return None
        return found if math.isfinite(found) and found > 0 else None

    def whole(self, column: str) -> int | None:
        """Return a column as a whole number of at least 1, None if it is not one."""
        found = self.number(column)
        if found is None or found != int(found) or found > 2**40:
            return None
        return int(found)

    def flag(self, column: str) -> bool | None:
        """Return a column as yes or no, None if it is neither."""
        word = self.text(column).lower()
        if word in _YES:
            return True
        return False if word in _NO else None


def read(path: str | Path) -> list[Row]:
    """Read a table of published runs, plain or gzipped.

    Raises
    ------
    InputError
        If the file cannot be read or has no column ``id``.
    """
    try:
        data = Path(path).read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        lines = data.decode("utf-8-sig").splitlines(keepends=True)
        table = csv.DictReader(lines)
        rows, columns = [Row(values) for values in table], table.fieldnames or ()
    except (OSError, UnicodeDecodeError, EOFError, csv.Error, zlib.error) as error:
        raise InputError(f"cannot read the table {path}: {error}") from error
    if "id" not in columns:
        got = ", ".join(str(column) for column in columns[:6])[:120]
        raise InputError(
            f"a table of published runs has a column 'id', got {path} with "
            f"{got or 'none at all'}"
        )
    return rows
