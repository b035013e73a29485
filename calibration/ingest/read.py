"""Read any supported file of measurements, or a folder of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...models.errors import InputError
from .attention import attention_rows, latent_rows
from .columns import read_columns
from .links import exchange_rows, nccl_rows
from .nccl_text import read_nccl_text
from .products import gemm_rows, grouped_rows
from .rules import Drops
from .simumax import read_simumax
from .traces import read_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows import Rows
    from .columns import Columns

#: Readers of Parquet tables by a column that only they have.
_TABLES: dict[str, Callable[[Columns, dict[str, Any], Drops], list[Rows]]] = {
    "gemm_dtype": gemm_rows,
    "moe_dtype": grouped_rows,
    "mla_dtype": latent_rows,
    "attn_dtype": attention_rows,
    "nccl_dtype": nccl_rows,
    "dispatch_sms": exchange_rows,
}
#: Where the kernel tables come from, and under which licence.
_AIC = {
    "source": "ai-dynamo/aiconfigurator",
    "version": "commit 095f58a",
    "licence": "Apache-2.0",
}
_SUFFIXES = (".parquet", ".json", ".json.gz", ".txt", ".csv", ".log", ".out")


@dataclass(frozen=True)
class Imported:
    """What a file held, and what was dropped of it."""

    path: str
    rows: tuple[Rows, ...]
    drops: Drops = field(default_factory=Drops)

    @property
    def kept(self) -> int:
        """Number of rows kept."""
        return sum(len(rows) for rows in self.rows)


def read(path: str | Path, device: str = "") -> list[Imported]:
    """Read a file of measurements, or all in a folder, in the order of their names.

    Parameters
    ----------
    path
        A kernel table (Parquet), a SimuMax system (JSON), a Chrome or Kineto trace
        (JSON), or the output of nccl-tests or rccl-tests.
    device
        Catalogue's name of the device, for text and traces that name none.

    Raises
    ------
    InputError
        If a file cannot be read or is of none of these kinds.
    """
    place = Path(path)
    if not place.exists():
        raise InputError(f"there is no file or folder {path}")
    if place.is_dir():
        inside = sorted(p for p in place.rglob("*") if p.name.endswith(_SUFFIXES))
        if not inside:
            raise InputError(
                f"the folder {path} has no file ending in {', '.join(_SUFFIXES)}"
            )
        return [_read(p, device, str(p.relative_to(place))) for p in inside]
    return [_read(place, device, place.name)]


def _read(path: Path, device: str, shown: str) -> Imported:
    drops = Drops()
    if path.suffix == ".parquet":
        rows = _parquet(path, shown, drops)
    elif path.name.endswith((".json", ".json.gz")):
        rows = _json(path, device, drops)
    else:
        rows = read_nccl_text(path, device, drops)
    return Imported(shown, tuple(part for part in rows if len(part)), drops)


def _parquet(path: Path, shown: str, drops: Drops) -> list[Rows]:
    table = read_columns(path)
    for column, reader in _TABLES.items():
        if table.has(column):
            return reader(table, {**_AIC, "table": shown}, drops)
    raise InputError(
        f"{path.name} is none of the known tables: each has one of the columns "
        f"{', '.join(_TABLES)}; it has {', '.join(table.columns)}"
    )


def _json(path: Path, device: str, drops: Drops) -> list[Rows]:
    import gzip
    import json

    try:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if path.name.endswith(".gz") else raw
        document = json.loads(text)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"cannot read {path.name} as JSON: {error}") from error
    if isinstance(document, dict) and "accelerator" in document:
        return read_simumax(document, path.name, drops)
    return read_trace(document, path.name, device, drops)
