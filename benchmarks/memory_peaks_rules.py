"""Which published peaks are left out, by rules written before anything was fitted.

A rule looks at what a row says of its run, and only ``repeated`` at what was measured.
Rows that a rule leaves out are predicted all the same, and the board shows the errors
with nothing left out beside the others.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .truth.row import Row


@dataclass(frozen=True)
class Exclusion:
    """One rule: its name, a sentence, and how a row is recognised."""

    name: str
    sentence: str
    applies: Callable[[Row], bool]


def arguments(row: Row) -> Mapping[str, Any]:
    """Return the arguments that the table keeps as JSON; none elsewhere."""
    text = row.text("extras")
    if not text.startswith("{"):
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _state_space(row: Row) -> bool:
    return "hybrid-layer-pattern" in arguments(row) or "nemotron-3" in row.text("model")


def _graphs(row: Row) -> bool:
    return "cuda-graph-impl" in arguments(row)


def _offload(row: Row) -> bool:
    return "fine-grained-activation-offloading" in arguments(row)


def _batch(row: Row) -> bool:
    return "INCONSISTENT mbs" in row.text("notes")


def crashed(row: Row) -> bool:
    """Whether the run ended for want of memory, or by another crash."""
    return row.text("oom").lower() in ("1", "true", "crashed_or_oom")


def _died(row: Row) -> bool:
    return crashed(row) and bool(row.text("memory_gb"))


EXCLUSIONS = (
    Exclusion(
        "encoder",
        "BERT is no decoder; its layers and loss are not modelled",
        lambda row: row.text("model").startswith("bert/"),
    ),
    Exclusion(
        "state-space",
        "layers of state-space models (Mamba) are not modelled",
        _state_space,
    ),
    Exclusion(
        "graphs",
        "CUDA graphs keep pools of their own, whose size no source states",
        _graphs,
    ),
    Exclusion(
        "fine-grained offload",
        "which tensors wait on the host at the peak depends on the copies' timing",
        _offload,
    ),
    Exclusion(
        "inconsistent batch",
        "micro-batch, accumulation and data parallelism do not give the global batch",
        _batch,
    ),
    Exclusion(
        "died",
        "the run ended in a crash, so that its peak is not that of a step",
        _died,
    ),
)
REPEATED = "repeated"
REPEATED_SENTENCE = (
    "the figure repeats, to four digits, that of another layout of the same test "
    "family: a stale golden"
)


def repeated(rows: Sequence[Row]) -> frozenset[str]:
    """Return the ids of CI rows whose peak is another layout's.

    A golden that was copied from a sibling test with another tp, pp or cp and never
    made again: the sibling that most rows agree with is kept.
    """
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.id.startswith("mcore-") and row.text("memory_gb"):
            # The statistic's text holds the bytes between steps as well.
            figures = row.text("memory_gb"), row.text("memory_stat")
            groups[*figures, row.text("gpu")].append(row)
    found = set()
    for group in groups.values():
        layouts = Counter(_degrees(row) for row in group)
        (usual, _), *others = layouts.most_common()
        for row in group if others else ():
            if _degrees(row) != usual:
                found.add(row.id)
    return frozenset(found)


CONTRADICTED = "contradicted"
CONTRADICTED_SENTENCE = (
    "a crash whose layout also ran with the same or a larger micro-batch, so that the "
    "cause cannot be memory"
)
_LAYOUT = ("model", "num_gpus", "tp", "pp", "dp", "zero_stage", "sp")


def layouts(rows: Iterable[Row]) -> list[list[Row]]:
    """Group the playbook's rows by layout: they differ by micro-batch."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.id.startswith("playbook-"):
            groups[tuple(row.text(name) for name in _LAYOUT)].append(row)
    return list(groups.values())


def contradicted(rows: Iterable[Row]) -> frozenset[str]:
    """Return the ids of crashes that another row of the same layout contradicts."""
    found: set[str] = set()
    for group in layouts(rows):
        ran = [r.whole("micro_batch") or 0 for r in group if not crashed(r)]
        most = max(ran, default=0)
        failed = [r for r in group if crashed(r)]
        if any((r.whole("micro_batch") or 0) <= most for r in failed):
            found.update(row.id for row in failed)
    return frozenset(found)


def _degrees(row: Row) -> tuple[str, str, str]:
    return row.text("tp"), row.text("pp"), row.text("cp")


def excluded(
    row: Row,
    stale: frozenset[str] = frozenset(),
    denied: frozenset[str] = frozenset(),
) -> str | None:
    """Return the name of the rule that leaves a row out, None if none does.

    Parameters
    ----------
    row
        The row.
    stale, denied
        What ``repeated`` and ``contradicted`` return for its table.
    """
    if row.id in stale:
        return REPEATED
    if row.id in denied:
        return CONTRADICTED
    return next((rule.name for rule in EXCLUSIONS if rule.applies(row)), None)
