"""Fit the profile of whole-rank peaks from a table: writes ``memory.json`` again.

``python -m shardproof.benchmarks.memory_peaks_fit --data CSV --out FILE``; without
``--data`` the shipped rows are read. Rows that a rule leaves out take no part.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..calibration.peaks import fit, ratios_left_out
from ..calibration.peaks.fit import band
from ..models.memory.library_constants import constants
from .memory_peaks import DATA, entries
from .memory_peaks_left import LAWS, points, reserved_points
from .truth.row import read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..calibration.peaks import Point
    from .memory_peaks_board import Entry


def document(found: Sequence[Entry]) -> dict[str, Any]:
    """Return the profile fitted to a board's rows."""
    kinds, held = points(found), reserved_points(found)
    (other,) = fit("offset", kinds["nanotron-tp1"])
    (rows,) = fit("imbalance", kinds["megatron-moe"])
    (expandable,) = fit("ratio", kinds["torchtitan"])
    blocks, rest = fit("blocks", held)
    left = {name: ratios_left_out(law, kinds[name]) for name, law in LAWS.items()}
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
