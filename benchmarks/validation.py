"""Projected against published step times: ``shardproof bench validation``.

Reads a table of published runs (the development rows are shipped and read if none is
given), normalises them by the rules of ``truth`` and prints the errors of projected
step times by source, device, model and framework, with and without the exclusions.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.errors import InputError
from .truth import EXCLUSIONS, INFERENCES, read
from .validation_board import board, missed
from .validation_predict import predict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .validation_predict import Predicted

DATA = Path(__file__).with_name("validation_rows.csv.gz")


def document(found: Sequence[Predicted]) -> dict[str, Any]:
    """Return what ``--json`` prints: every row that states a layout, and the board."""
    return {
        "rows": [_row(one) for one in found if one.entry.setting is not None],
        "unread": {
            one.entry.row.id: one.entry.excluded[0]
            for one in found
            if one.entry.setting is None
        },
        "board": board(found),
    }


def _row(one: Predicted) -> dict[str, Any]:
    setting = one.entry.setting
    assert setting is not None
    predicted = None
    if one.step_time_s is not None:
        predicted = {
            "step_time_s": one.step_time_s,
            "tokens_per_s_per_gpu": one.tokens_per_s_per_gpu,
            "peak_bytes": one.peak_bytes,
        }
    return {
        "id": one.entry.row.id,
        "predicted": predicted,
        "band": one.band and list(one.band),
        "excluded": ", ".join(one.entry.excluded) or None,
        "error": one.error,
        "group": one.group,
        "profile": one.profile,
        "calibrated": one.calibrated,
        "assumed": list(setting.assumed),
        "fault": one.fault or None,
    }


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmark and return its exit code.

    Parameters
    ----------
    words
        The command line, that of the process if absent.
    """
    parser = argparse.ArgumentParser(prog="shardproof bench validation")
    parser.add_argument("--data", type=Path, default=DATA, help="table of runs, CSV")
    parser.add_argument("--source", default="", help="only rows whose source has this")
    parser.add_argument("--json", action="store_true", help="print a document")
    parser.add_argument("--gate", action="store_true", help="exit with 1 if one fails")
    parser.add_argument("--rules", action="store_true", help="print the rules")
    parser.add_argument(
        "--no-memory", action="store_true", help="leave out peaks, which take longest"
    )
    asked = parser.parse_args(words)
    if asked.rules:
        for rules in (INFERENCES, EXCLUSIONS):
            print("\n".join(f"{name}: {text}" for name, text in rules.items()) + "\n")
        return 0
    rows = [r for r in read(asked.data) if asked.source.lower() in r.words("source")]
    if not rows:
        raise InputError(f"{asked.data} has no run of a source with {asked.source!r}")
    found = predict(rows, memory=asked.json and not asked.no_memory)
    shown = document(found)
    faults = missed(shown["board"])
    if asked.json:
        print(json.dumps(shown))
    else:
        _print(shown["board"])
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if asked.gate and faults else 0


def _print(groups: dict[str, Any]) -> None:
    heads = ("rows", "median", "p90", "bias", "tau", "covered", "all: rows", "median")
    print(f"{'':<40}" + "".join(f"{h:>10}" for h in (*heads, "p90")))
    for kind, entries in groups.items():
        print(kind)
        for name, found in entries.items():
            kept, every = found["kept"], found["nothing excluded"]
            cells = [str(kept["rows"])]
            cells += [_percent(kept[k]) for k in ("median", "p90", "bias")]
            cells.append("" if kept["tau"] is None else f"{kept['tau']:.2f}")
            cells.append(_percent(kept["covered"]))
            cells += [str(every["rows"]), *(_percent(every[k]) for k in _TWO)]
            print(f"  {name[:38]:<38}" + "".join(f"{c:>10}" for c in cells))


_TWO = ("median", "p90")


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}%"


if __name__ == "__main__":
    raise SystemExit(main())
