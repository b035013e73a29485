"""Recorded verdicts of megatron-core: a table with one sparse column for each axis.

Each case is a plain launch of one of a few models with some axes changed, so that
twenty thousand of them fit in a small file. ``tests/solver/verdict`` writes it.
"""

from __future__ import annotations

import copy
import gzip
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

RECORDS = Path(__file__).with_name("verdict_records.json.gz")
_RUN = ("world", "global_batch", "micro_batch", "seq")


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One case and what the framework said.

    Attributes
    ----------
    kind
        The rule that the case was made for, with `` ok`` behind it if it lies on the
        legal side; ``drawn`` if it was made for none.
    case
        The case, in the form that ``legality.judge`` takes.
    stage
        The first stage that refused, empty if none did.
    legal
        Whether none refused and every layer is built once.
    step
        Whether a training step ran, None if none was asked for.
    """

    kind: str
    case: Mapping[str, Any]
    stage: str
    legal: bool
    step: bool | None = None


def _sparse(rows: Sequence[Mapping[str, Any]], name: str) -> list[list[Any]]:
    """Return the gaps between the rows that have a value, and the values."""
    held = [i for i, row in enumerate(rows) if name in row]
    gaps = [b - a for a, b in zip([0, *held], held, strict=False)]
    return [gaps, [rows[i][name] for i in held]]


def _spread(column: Sequence[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
    at = 0
    for gap, value in zip(*column, strict=True):
        at += gap
        yield at, value


def write_records(
    path: Path,
    found: Sequence[Recorded],
    *,
    plain: Mapping[str, Any],
    architectures: Mapping[str, Mapping[str, Any]],
    provenance: Mapping[str, str],
) -> None:
    """Write verdicts; every case names its architecture in ``arch['name']``."""
    archs, configs = [], []
    for row in found:
        arch, config = dict(row.case["arch"]), row.case["config"]
        base = architectures[arch.pop("name")]
        archs.append({k: v for k, v in arch.items() if base.get(k, ...) != v})
        configs.append({k: v for k, v in config.items() if plain.get(k, ...) != v})
    stages = ["", *sorted({row.stage for row in found} - {""})]
    names = sorted(architectures)
    table = {
        "provenance": dict(provenance),
        "plain": dict(plain),
        "architectures": dict(architectures),
        "stages": stages,
        "kind": [row.kind for row in found],
        "name": [names.index(row.case["arch"]["name"]) for row in found],
        "run": {n: [row.case[n] for row in found] for n in _RUN},
        "arch": {n: _sparse(archs, n) for n in sorted(set().union(*archs))},
        "config": {n: _sparse(configs, n) for n in sorted(set().union(*configs))},
        "stage": [stages.index(row.stage) for row in found],
        "lost": [i for i, row in enumerate(found) if not row.stage and not row.legal],
        "step": [[i, row.step] for i, row in enumerate(found) if row.step is not None],
    }
    text = json.dumps(table, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(text, 9, mtime=0))


def provenance(path: Path = RECORDS) -> dict[str, str]:
    """Return the versions that were asked, and the hash of what asked them."""
    found: dict[str, str] = _table(path)["provenance"]
    return found


def read_records(path: Path = RECORDS) -> list[Recorded]:
    """Read recorded verdicts.

    Raises
    ------
    InputError
        If the file is not there or not such a table.
    """
    table = _table(path)
    names, lost = sorted(table["architectures"]), set(table["lost"])
    archs = [copy.deepcopy(table["architectures"][names[i]]) for i in table["name"]]
    configs = [dict(table["plain"]) for _ in archs]
    for rows, columns in ((archs, table["arch"]), (configs, table["config"])):
        for name, column in columns.items():
            for at, value in _spread(column):
                rows[at][name] = value
    steps = dict(table["step"])
    found = []
    for i, kind in enumerate(table["kind"]):
        run = {name: table["run"][name][i] for name in _RUN}
        stage = table["stages"][table["stage"][i]]
        found.append(
            Recorded(
                kind=kind,
                case={"arch": archs[i], "config": configs[i], **run},
                stage=stage,
                legal=not stage and i not in lost,
                step=steps.get(i),
            )
        )
    return found


def _table(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise InputError(f"{path} holds no recorded verdicts: {error}") from None
    if not isinstance(table, dict) or "provenance" not in table:
        raise InputError(f"{path} holds no recorded verdicts: no provenance in it")
    return table
