"""Columns of a Parquet table as arrays; a damaged file is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.errors import InputError
from .machines import device_named

if TYPE_CHECKING:
    from pathlib import Path

    from ...models.profiles.surfaces.law import Floats


@dataclass(frozen=True, eq=False)
class Columns:
    """A table by column, and what all its rows share.

    Attributes
    ----------
    where
        Names the file in messages.
    device
        Catalogue's name of the device that most rows name.
    """

    where: str
    device: str
    columns: dict[str, Any]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values())))

    def numbers(self, name: str) -> Floats:
        """Return a column as floats; what is not a number becomes NaN."""
        return np.asarray(self._get(name), dtype=float)

    def words(self, name: str) -> Any:
        """Return a column as strings, empty where the file has none."""
        return np.array([str(v) if v is not None else "" for v in self._get(name)])

    def has(self, name: str) -> bool:
        """Say whether the table has a column."""
        return name in self.columns

    def _get(self, name: str) -> Any:
        if name not in self.columns:
            raise InputError(
                f"{self.where} has no column {name!r}; it has {', '.join(self.columns)}"
            )
        return self.columns[name]


def read_columns(path: Path) -> Columns:
    """Read a Parquet file.

    Raises
    ------
    InputError
        If pyarrow is not installed, or the file is truncated, empty or no Parquet.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import read_table
    except ImportError as error:
        raise InputError(
            "kernel tables are Parquet files, and reading them needs pyarrow; "
            "install it with: pip install 'shardproof[calibration]'"
        ) from error
    try:
        table = read_table(path)
    except (OSError, ArrowException) as error:
        raise InputError(f"cannot read {path.name} as Parquet: {error}") from error
    if not table.num_rows:
        raise InputError(f"{path.name} has no rows")
    columns = {name: table[name].to_numpy() for name in table.column_names}
    if "device" not in columns:
        raise InputError(f"{path.name} names no device: it needs a device column")
    names, counts = np.unique(columns["device"].astype(str), return_counts=True)
    folder = path.parent.name
    named = folder if "_sxm" in folder or folder.startswith("gb") else ""
    device = device_named(named or str(names[counts.argmax()]))
    return Columns(path.name, device, columns)
