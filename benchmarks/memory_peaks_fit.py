"""Fit the profile of whole-rank peaks from a table: writes ``memory.json`` again.

``python -m shardproof.benchmarks.memory_peaks_fit --data CSV --out FILE``; without
``--data`` the shipped rows are read. Rows that a rule leaves out take no part.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..calibration.peaks import Point, fit, ratios_left_out
from ..calibration.peaks.fit import band
from ..models.memory.library_constants import constants
from ..models.units import GIB
from .memory_peaks import DATA, entries
from .memory_peaks_board import RESERVED_TEXT
from .truth.row import read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .memory_peaks_board import Entry

#: The law that each kind of run is corrected by, and the sources that it is fitted on.
_LAWS = {
    "megatron-dense": "none",
    "megatron-moe": "imbalance",
    "nanotron-tp1": "offset",
    "nanotron-tp": "none",
    "torchtitan": "ratio",
}
_FITTED = ("mcore", "simumax", "playbook", "torchtitan")


def points(found: Sequence[Entry]) -> dict[str, list[Point]]:
    """Return the measured peaks by kind, each with what is counted without a fit."""
    other = constants().size("nanotron_other_bytes").bytes
    uneven = constants().number("routing_imbalance") - 1
    by_kind: dict[str, list[Point]] = defaultdict(list)
    for entry in found:
        prediction, measured = entry.prediction, entry.measured
        if entry.excluded or prediction is None or measured is None:
            continue
        if entry.source not in _FITTED:
            continue
        counted = prediction.allocated - prediction.uneven
        if prediction.kind == "nanotron-tp1":
            counted -= other
        by_kind[prediction.kind].append(
            Point(
                kind=prediction.kind,
                model=entry.row.text("model"),
                counted=counted,
                temporary=prediction.temporary,
                measured=measured,
                routed=prediction.uneven / uneven if uneven else 0.0,
            )
        )
    return dict(by_kind)


def reserved_points(found: Sequence[Entry]) -> list[Point]:
    """Return the rows that state reserved bytes beside the allocated ones."""
    points = []
    for entry in found:
        text = RESERVED_TEXT.search(entry.row.text("notes"))
        if text and entry.prediction:
            points.append(
                Point(
                    kind="reserved",
                    model=entry.row.text("model"),
                    counted=entry.prediction.allocated,
                    temporary=entry.prediction.temporary,
                    measured=float(text[1]) * GIB,
                )
            )
    return points


def document(found: Sequence[Entry]) -> dict[str, Any]:
    """Return the profile fitted to a board's rows."""
    kinds, held = points(found), reserved_points(found)
    (other,) = fit("offset", kinds["nanotron-tp1"])
    (rows,) = fit("imbalance", kinds["megatron-moe"])
    (expandable,) = fit("ratio", kinds["torchtitan"])
    blocks, rest = fit("blocks", held)
    left = {name: ratios_left_out(law, kinds[name]) for name, law in _LAWS.items()}
    left["reserved"] = ratios_left_out("blocks", held)
    fitted = {
        "nanotron_other_bytes": {
            "bytes": round(other),
            "source": _source("median of what is missing", kinds["nanotron-tp1"]),
        },
        "reserved_blocks": {
            "value": round(blocks, 3),
            "source": _source("least squares over reserved peaks", held),
        },
        "reserved_bytes": {
            "value": round(rest),
            "source": _source("least squares over reserved peaks", held),
        },
        "reserved_expandable_ratio": {
            "value": round(expandable, 4),
            "source": _source("median over reserved peaks", kinds["torchtitan"]),
        },
        "routing_imbalance": {
            "value": round(max(rows, 1.01), 3),
            "source": _source("median of what is missing", kinds["megatron-moe"]),
        },
        "bands": {
            name: {
                "ratios": band([ratio for _, ratio in ratios]),
                "rows": len(ratios),
                "models": len({point.model for point, _ in ratios}),
                "source": "measured over predicted, each model left out of the fit",
            }
            for name, ratios in left.items()
        },
    }
    return {**constants().document, **fitted}


def _source(law: str, fitted: Sequence[Point]) -> str:
    models = len({point.model for point in fitted})
    return f"{law}: {len(fitted)} rows of {models} models, see docs/peaks.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Fit and write."""
    parser = argparse.ArgumentParser(
        prog="python -m shardproof.benchmarks.memory_peaks_fit"
    )
    parser.add_argument("--data", type=Path, default=DATA, help="a CSV table")
    parser.add_argument("--out", type=Path, required=True, help="the profile to write")
    chosen = parser.parse_args(argv)
    shown = document(entries(read(chosen.data)))
    chosen.out.write_text(json.dumps(shown, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
