"""Predicted against measured peaks of whole ranks: ``shardproof bench memory-peaks``.

Reads a table of published runs (the schema of ``truth``; the rows that the bands were
fitted on are shipped and read if none is given) and prints a board: by source and kind
the errors of predicted peaks, of another tool where the source prints one, and with
nothing left out; then the verdicts of runs that failed and of runs that fit.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.errors import InputError
from ..models.memory.library_device import band
from . import memory_peaks_rules as rules
from .memory_peaks_board import Entry, board
from .memory_peaks_left import left_out
from .memory_peaks_mcore import remade
from .memory_peaks_predict import predict
from .truth.row import read
from .truth.rules import Unstated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .truth.row import Row

DATA = Path(__file__).with_name("memory_peaks_rows.csv.gz")
#: Largest median and 95th percentile of a group's errors: the gate.
GATE = {
    "simumax megatron-dense": (0.005, 0.014),
    "simumax megatron-moe": (0.005, 0.014),
    "mcore gpt": (0.02, 0.07),
    "mcore moe": (0.04, None),
    "mcore mixtral": (0.06, None),
    "playbook nanotron-tp1": (0.03, None),
    "torchtitan torchtitan": (0.04, None),
}


def entries(rows: Sequence[Row], context: Sequence[Row] = ()) -> list[Entry]:
    """Predict every row that states its layout.

    Parameters
    ----------
    rows
        The rows.
    context
        More rows of the same tables, which tell which goldens were made again.
    """
    everything = (*context, *rows)
    known, stale = remade(everything), rules.repeated(everything)
    denied = rules.contradicted(everything)
    return [_entry(row, known, rules.excluded(row, stale, denied)) for row in rows]


def _entry(row: Row, known: frozenset[str], excluded: str | None) -> Entry:
    try:
        prediction = predict(row, known)
    except (InputError, Unstated) as error:
        return Entry(row=row, prediction=None, excluded=excluded or str(error))
    except (ArithmeticError, AssertionError, LookupError, ValueError) as error:
        # A row of an unknown kind may say anything; it must not end the others.
        return Entry(row=row, prediction=None, excluded=excluded or f"unread: {error}")
    return Entry(row=row, prediction=prediction, excluded=excluded)


def document(found: Sequence[Entry], confidence: float) -> dict[str, Any]:
    """Return what ``--json`` prints: a row for each prediction, and the board."""
    return {
        "confidence": confidence,
        "rows": [
            _row(entry, confidence)
            for entry in found
            if entry.prediction is not None or entry.excluded
        ],
        **board(found, confidence),
        "left_out": left_out(found),
    }


def _row(entry: Entry, confidence: float) -> dict[str, Any]:
    found = entry.prediction
    shown: dict[str, Any] = {"id": entry.row.id, "excluded": entry.excluded}
    if found is None:
        return {**shown, "predicted": None, "band": None, "verdict": None}
    kind = band(found.kind)
    low, high = ((1 - confidence) / 2, (1 + confidence) / 2)
    return {
        **shown,
        "predicted": {
            "peak_bytes": found.peak,
            "allocated_bytes": found.allocated,
            "reserved_bytes": found.reserved,
            "device_bytes": found.device,
        },
        "rank": found.rank,
        "kind": found.kind,
        "band": [round(found.peak * kind.quantile(p)) for p in (low, high)],
        "verdict": entry.verdict(confidence),
    }


def missed(groups: dict[str, Any]) -> list[str]:
    """Return a sentence for each group of the board that misses its gate."""
    found = []
    for name, (median, tail) in GATE.items():
        got = groups.get(name, {}).get("kept", {"rows": 0})
        if got["rows"] and got["median"] > median:
            found.append(f"{name}: median {got['median']:.2%} above {median:.2%}")
        if got["rows"] and tail is not None and got["p95"] > tail:
            found.append(f"{name}: 95th percentile {got['p95']:.2%} above {tail:.2%}")
    return found


def _print(shown: dict[str, Any]) -> None:
    heads = "".join(f"{head:>9}" for head in ("median", "p90", "p95", "max", "bias"))
    print(f"{'group':<34}{'rows':>6}{heads}")
    for name, group in shown["groups"].items():
        for label, found in group.items():
            _line(name if label == "kept" else f"  {label.replace('_', ' ')}", found)
    print("each model left out of the fit")
    for name, found in shown["left_out"].items():
        _line(f"  {name}", found)
    print("failed runs called fits, and others refused")
    for name, group in shown["boundary"].items():
        print(
            f"  {name:<32}{group['failed_called_fits']:>6} of {group['failed']:<6}"
            f"{group['ran_refused']:>6} of {group['ran']}"
        )


def _line(title: str, found: dict[str, Any]) -> None:
    cells = (found.get(k) for k in ("median", "p90", "p95", "max", "bias"))
    line = "".join("" if cell is None else f"{100 * cell:>8.2f}%" for cell in cells)
    print(f"{title:<34}{found['rows']:>6}{line}")


def main(argv: Sequence[str] | None = None) -> int:
    """Predict, print the board, and return 0; with ``--gate`` 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="shardproof bench memory-peaks")
    parser.add_argument("--data", type=Path, help="a CSV table of published runs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--gate", action="store_true", help="fail if a bar is missed")
    parser.add_argument("--confidence", type=float, default=0.99)
    chosen = parser.parse_args(argv)
    band("megatron-dense").quantile(chosen.confidence)
    shipped = read(DATA)
    rows = read(chosen.data) if chosen.data else shipped
    given = {row.id for row in rows}
    context = [row for row in shipped if row.id not in given]
    shown = document(entries(rows, context), chosen.confidence)
    print(json.dumps(shown) if chosen.json else "", end="\n" if chosen.json else "")
    if not chosen.json:
        _print(shown)
    faults = missed(shown["groups"]) if chosen.gate else []
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
