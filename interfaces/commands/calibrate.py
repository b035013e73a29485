"""``shardproof calibrate``: read published measurements and fit layers to them."""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING

from ...models.errors import InputError
from ..files import write
from ..table import Column, Table, say, show
from .report import OK

if TYPE_CHECKING:
    from pathlib import Path

    from ...calibration.ingest import Imported


def run(
    action: str, paths: tuple[str, ...], *, device: str, out: Path | None, as_json: bool
) -> int:
    """Import or fit, and return the exit code."""
    if action not in ("import", "fit"):
        raise InputError(f"calibrate takes import or fit, got {action}")
    if not paths:
        raise InputError(f"calibrate {action} needs a file or folder of measurements")
    # Threads only cost here: the systems are small.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if action == "fit" and out is None:
        raise InputError("calibrate fit needs --out DIR, where the layers go")
    found = [part for path in paths for part in _read(path, device)]
    _report(found, as_json=as_json)
    if action == "fit" and out is not None:
        _fit(found, out)
    return OK


def _read(path: str, device: str) -> list[Imported]:
    from ...calibration.ingest import read

    try:
        return read(path, device)
    except (RecursionError, zlib.error) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise InputError(f"cannot read {path}: {reason}") from None


def _report(found: list[Imported], *, as_json: bool) -> None:
    from ...calibration.ingest.rules import RULES

    if as_json:
        documents = [
            {
                "path": part.path,
                "kept": {f"{r.device} {r.kernel}": len(r) for r in part.rows},
                "dropped": part.drops.counts,
            }
            for part in found
        ]
        print(json.dumps({"files": documents, "rules": RULES}, indent=1))
        return
    columns = (
        Column("file", "left"),
        Column("device", "left"),
        Column("kernels"),
        Column("kept"),
        Column("dropped"),
        Column("by rule", "left", True),
    )
    rows = [
        (
            part.path,
            ", ".join(sorted({r.device for r in part.rows})),
            str(len(part.rows)),
            f"{part.kept:,}",
            f"{sum(part.drops.counts.values()):,}",
            ", ".join(f"{name} {n:,}" for name, n in part.drops.counts.items()),
        )
        for part in found
    ]
    show(Table(columns, tuple(rows)))
    used = {name for part in found for name in part.drops.counts}
    for name in sorted(used):
        say(f"{name}: {RULES[name]}")


def _fit(found: list[Imported], out: Path) -> None:
    try:
        import scipy  # noqa: F401
    except ImportError as error:
        raise InputError(
            "fits need scipy; install it with: pip install 'shardproof[calibration]'"
        ) from error
    from ...calibration.fit.ship import fit_layers
    from ...models.profiles.layer_file import text_of

    for layer in fit_layers(found, say):
        path = out / layer.kind / f"{layer.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, text_of(layer))
        say(f"wrote {path}: {layer.title}, {len(layer.tables)} kernels")
