"""The board of predicted peaks: errors by source and kind, and the verdicts."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..models.memory.library_device import DOES_NOT_FIT, FITS, band, verdict
from ..models.units import GIB
from .memory_peaks_rules import crashed, layouts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .memory_peaks_predict import Prediction
    from .truth.row import Row

#: Where a row states reserved bytes beside the allocated ones, in GiB.
RESERVED_TEXT = re.compile(r'"memory_reserved_gb": ([\d.]+)')


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row with its prediction, None where there is none, and why it is left out."""

    row: Row
    prediction: Prediction | None
    excluded: str | None

    @property
    def measured(self) -> float | None:
        """Measured bytes of the row's own statistic."""
        found = self.row.number("memory_gb")
        return None if found is None else found * GIB

    @property
    def source(self) -> str:
        """Collection of the row, by the beginning of its name."""
        return self.row.id.partition("-")[0]

    @property
    def group(self) -> str:
        """Source and kind: the families of Megatron's CI, tp of the playbook."""
        kind = self.prediction.kind if self.prediction else "unknown"
        if self.source == "mcore":
            return f"mcore {self.row.text('model').partition('/')[0]}"
        return f"{self.source} {kind}"

    def error(self) -> float | None:
        """Predicted over measured, less one."""
        if self.prediction is None or self.measured is None:
            return None
        return self.prediction.peak / self.measured - 1

    def reserved_error(self) -> float | None:
        """The same of reserved bytes, where a row states both."""
        found = RESERVED_TEXT.search(self.row.text("notes"))
        if self.prediction is None or found is None:
            return None
        return self.prediction.reserved / (float(found[1]) * GIB) - 1

    def verdict(self, confidence: float) -> str | None:
        """Return whether the run fits on its device."""
        found = self.prediction
        if found is None or found.limit is None:
            return None
        totals = found.device, found.device_reserved
        return verdict(*totals, found.limit, band(found.kind), confidence)


def tool_error(row: Row) -> float | None:
    """Return the error of the peak that another tool printed for the same row."""
    try:
        printed = json.loads(row.text("tool_predictions") or "[]")
    except ValueError:
        return None
    measured = row.number("memory_gb")
    for entry in printed if isinstance(printed, list) else ():
        if measured and "peak alloc" in str(entry.get("name", "")):
            return float(entry["value"]) / measured - 1
    return None


def figures(errors: Sequence[float]) -> dict[str, Any]:
    """Return number, median, quantiles and maximum of errors, and their bias."""
    if not errors:
        return {"rows": 0}
    sizes = np.abs(errors)
    return {
        "rows": len(errors),
        "median": round(float(np.median(sizes)), 5),
        "p90": round(float(np.quantile(sizes, 0.9)), 5),
        "p95": round(float(np.quantile(sizes, 0.95)), 5),
        "max": round(float(sizes.max()), 5),
        "bias": round(float(np.median(errors)), 5),
    }


def board(entries: Iterable[Entry], confidence: float) -> dict[str, Any]:
    """Return errors by group, with and without the rows left out, and verdicts."""
    kept: dict[str, list[float]] = defaultdict(list)
    whole: dict[str, list[float]] = defaultdict(list)
    tools: dict[str, list[float]] = defaultdict(list)
    held: dict[str, list[float]] = defaultdict(list)
    listed = list(entries)
    for entry in listed:
        error = entry.error()
        if error is None:
            continue
        whole[entry.group].append(error)
        if entry.excluded:
            continue
        kept[entry.group].append(error)
        if (other := tool_error(entry.row)) is not None:
            tools[entry.group].append(other)
        if (reserved := entry.reserved_error()) is not None:
            held[entry.group].append(reserved)
    return {
        "groups": {
            name: {
                "kept": figures(kept[name]),
                "nothing_excluded": figures(whole[name]),
                **({"other_tool": figures(tools[name])} if tools[name] else {}),
                **({"reserved": figures(held[name])} if held[name] else {}),
            }
            for name in sorted(whole)
        },
        "boundary": boundary(listed, confidence),
    }


def boundary(entries: Sequence[Entry], confidence: float) -> dict[str, Any]:
    """Count verdicts of runs that failed for want of memory and of runs that fit.

    A crash of the playbook counts only where a smaller micro-batch of the same layout
    ran. Rows that contradict another, or whose batch does not add up, count nowhere.
    """
    trusted = _trusted(entries)
    found: dict[str, dict[str, int]] = {}
    for entry in entries:
        verdict = entry.verdict(confidence)
        failed = crashed(entry.row)
        if verdict is None or (failed and entry.row.id not in trusted):
            continue
        if entry.excluded not in (None, "died"):
            continue
        if not failed and entry.row.text("oom") == "":
            continue
        group = found.setdefault(
            entry.group,
            {"failed": 0, "failed_called_fits": 0, "ran": 0, "ran_refused": 0},
        )
        if failed:
            group["failed"] += 1
            group["failed_called_fits"] += verdict == FITS
        else:
            group["ran"] += 1
            group["ran_refused"] += verdict == DOES_NOT_FIT
    return found


def _trusted(entries: Sequence[Entry]) -> frozenset[str]:
    """Return failed rows that were failed by memory."""
    found = {e.row.id for e in entries if crashed(e.row) and e.source != "playbook"}
    for rows in layouts(entry.row for entry in entries):
        if any(not crashed(row) for row in rows):
            found.update(row.id for row in rows if crashed(row))
    return frozenset(found)
