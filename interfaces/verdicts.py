"""Verdicts of whole ranks: what libraries hold is added, and a confidence given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..models.errors import InputError
from ..models.units import gib

if TYPE_CHECKING:
    from ..models.layout import Layout
    from ..models.problem import Problem
    from .document import Document


#: The confidence of a verdict where a user asks for none.
CONFIDENCE = 0.99
#: Configurations of an answer that are judged: the first alone, as each takes 0.1 s.
VERDICTS = 1


def sure(confidence: float) -> None:
    """Check a confidence before anything is computed.

    Raises
    ------
    InputError
        If it is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise InputError(
            f"--confidence is above 0 and below 1, such as 0.99, got {confidence}"
        )


def verdict_of(problem: Problem, layout: Layout, confidence: float) -> Document:
    """Say whether a layout fits with a confidence, and what its fullest rank needs.

    Parameters
    ----------
    problem, layout
        The question and one of its layouts.
    confidence
        The probability with which the verdict is to hold, between 0 and 1.

    Returns
    -------
    dict
        The verdict (``fits``, ``at risk``, ``does not fit``); the fullest rank, its
        allocated and reserved bytes and its peak in each phase; the device's total
        and limit, and the upper bound of the total at the confidence.

    Raises
    ------
    InputError
        If the confidence is not between 0 and 1.
    """
    from ..models.memory.library_device import (
        band,
        device_bytes,
        largest_temporary,
        reserved,
        verdict,
    )
    from ..models.memory.library_run import groups_of, run_of
    from ..models.memory.phases import worst
    from ..models.memory.phases_step import phases

    architecture = problem.architecture
    kind = band("megatron-moe" if architecture.is_moe else "megatron-dense")
    upper = kind.quantile(confidence)
    run = run_of(problem, layout)
    peak = worst(run)
    held = reserved(peak.bytes, largest_temporary(run.model, run.stages[peak.rank]))
    groups = groups_of(layout.point())
    low, high = device_bytes(peak.bytes, groups), device_bytes(held, groups)
    limit = problem.cluster.device.hbm_bytes
    return {
        "verdict": verdict(low, high, limit, kind, confidence),
        "confidence": confidence,
        "rank": peak.rank,
        "allocated_bytes": peak.bytes,
        "reserved_bytes": held,
        "device_bytes": high,
        "upper_bytes": round(high * upper),
        "limit_bytes": limit,
        "phases": dict(phases(run, peak.rank)),
    }


def sentence(found: Document) -> str:
    """Write a verdict in one line."""
    words = {
        "fits": "fits",
        "at risk": "is at risk",
        "does not fit": "does not fit",
    }
    sizes = (
        found[f"{name}_bytes"] for name in ("reserved", "device", "upper", "limit")
    )
    held, total, upper, limit = (gib(size) for size in sizes)
    return (
        f"At {found['confidence']:.4g} confidence it {words[found['verdict']]}: "
        f"pipeline rank {found['rank']} reserves {held}, its device needs {total} and "
        f"at most {upper} of {limit}."
    )
