"""``shardproof memory``: what lies in memory at the peak, byte by byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.units import GIB, gib
from ..document import MEMORY, Document, problem
from ..one import MemoryReport, memory_one
from ..table import Column, Table
from ..verdicts import CONFIDENCE, sentence, sure, verdict_of
from ..words import layout, question
from .report import INFEASIBLE, OK, finish, refuse
from .waterfall import by_phase, per_rank, phases, waterfall

if TYPE_CHECKING:
    from ..request import Request


def run(
    request: Request,
    *,
    rank: int | None,
    as_json: bool,
    confidence: float = CONFIDENCE,
    listed: bool = False,
) -> int:
    """Add up, print, and return the exit code: 1 if it does not fit.

    Parameters
    ----------
    request
        The problem and the layout.
    rank
        The pipeline rank to look at, None for the fullest.
    as_json
        Whether to print one JSON document.
    confidence
        Of the verdict.
    listed
        Whether to print every item instead of the components they add up to.
    """
    sure(confidence)
    found = memory_one(request, rank)
    if not isinstance(found, MemoryReport):
        return refuse(found, as_json=as_json)
    verdict = verdict_of(found.problem, found.layout, confidence)
    finish(
        {**document(found), "verdict": verdict},
        title=question(found.problem),
        tables=[items(found)] if listed else _overview(found),
        text=f"{_text(found)}\n{sentence(verdict)}",
        as_json=as_json,
    )
    return OK if found.fits else INFEASIBLE


def _overview(found: MemoryReport) -> list[Table]:
    ranks = dict(enumerate(found.memory.per_rank))
    tables = [waterfall(found), phases(found)]
    if len(ranks) > 1:
        tables.append(per_rank(ranks, found.limit_bytes))
    return tables


def on_hosts(found: MemoryReport) -> list[int]:
    """Return the bytes that each pipeline rank keeps on its host."""
    from ...models.expr import value
    from ...solver.peaks import Peaks
    from ...solver.single import domains_of

    if not found.layout.offload:
        return [0] * len(found.memory.per_rank)
    peaks = Peaks(domains_of(found.problem, found.layout))
    point = found.layout.point()
    ranks = peaks.ranks(peaks.key(point))
    return [value(peaks.model.host(*rank), point) for rank in ranks]


def items(found: MemoryReport) -> Table:
    """Return one row for each item alive at the peak, largest first."""
    listed = sorted(found.items, key=lambda entry: -entry[1])
    rows = [
        (item.name, item.phase, str(item.count), f"{size:,}", f"{size / GIB:.2f}")
        for item, size in listed
        if size
    ]
    total = sum(size for _, size in found.items)
    rows.append(("total", "", "", f"{total:,}", f"{total / GIB:.2f}"))
    columns = (
        Column("item", "left"),
        Column("phase", "left"),
        Column("count"),
        Column("bytes"),
        Column("GiB"),
    )
    return Table(columns, tuple(rows))


def _text(found: MemoryReport) -> str:
    ranks = ", ".join(gib(b) for b in found.memory.per_rank)
    spare = found.limit_bytes - found.memory.peak_bytes
    verdict = (
        f"It fits in {gib(found.limit_bytes)} with {gib(spare)} to spare."
        if found.fits
        else f"It does not fit in {gib(found.limit_bytes)}: {-spare:,} bytes "
        f"({gib(-spare)}) are missing."
    )
    host = on_hosts(found)
    node = max(host) * found.problem.cluster.gpus_per_node
    beside = (
        f"On the host: {gib(max(host))} for a rank, {gib(node)} for a node.\n"
        if node
        else ""
    )
    return (
        f"Listed: pipeline rank {found.rank} of {layout(found.layout)}.\n"
        f"Peak of each pipeline rank: {ranks}.\n{beside}{verdict}"
    )


def document(found: MemoryReport) -> Document:
    """Return what ``shardproof memory --json`` prints."""
    return {
        "schema": MEMORY,
        "problem": problem(found.problem),
        "layout": found.layout.labels(),
        "memory": {
            "peak_bytes": found.memory.peak_bytes,
            "per_rank": list(found.memory.per_rank),
        },
        "limit_bytes": found.limit_bytes,
        "fits": found.fits,
        "rank": found.rank,
        "phases": by_phase(found.items),
        "host_bytes": on_hosts(found),
        "items": [
            {
                "name": item.name,
                "tensor": item.tensor,
                "phase": item.phase,
                "count": item.count,
                "source": item.source,
                "bytes": size,
            }
            for item, size in found.items
        ],
    }
