"""Measured peaks as points of a fit, and errors with each model left out."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ..calibration.peaks import Point, ratios_left_out
from ..models.memory.library_constants import constants
from ..models.units import GIB
from .memory_peaks_board import RESERVED_TEXT, figures

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .memory_peaks_board import Entry

#: The law that each kind of run is corrected by, and the sources that it is fitted on.
LAWS = {
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


def left_out(found: Sequence[Entry]) -> dict[str, Any]:
    """Return by kind the errors of rows predicted by a fit without their model."""
    shown = {}
    for kind, held in [*points(found).items(), ("reserved", reserved_points(found))]:
        law = LAWS.get(kind, "none") if kind != "reserved" else "blocks"
        errors = [1 / ratio - 1 for _, ratio in ratios_left_out(law, held)]
        if errors:
            shown[f"{kind} ({law})"] = figures(errors)
    return shown
