"""A rank's peak as a waterfall: what adds up to it, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.units import GIB
from ..table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ...models.memory import Item
    from ..one import MemoryReport

#: Phases in the order in which they pile up.
PHASES = ("constant", "state", "kept", "moment")
#: Characters of the longest bar.
WIDTH = 40


def by_phase(items: Iterable[tuple[Item, int]]) -> dict[str, int]:
    """Return the bytes of each phase of a rank's peak."""
    sums = dict.fromkeys(PHASES, 0)
    for item, size in items:
        sums[item.phase] += size
    return sums


def groups(items: Iterable[tuple[Item, int]]) -> dict[tuple[str, str], int]:
    """Return bytes by phase and component, the largest of a phase first."""
    sums: dict[tuple[str, str], int] = {}
    for item, size in items:
        component, _, rest = item.name.partition(": ")
        key = (item.phase, component if rest else item.name)
        sums[key] = sums.get(key, 0) + size
    return dict(sorted(sums.items(), key=lambda kv: (PHASES.index(kv[0][0]), -kv[1])))


def waterfall(found: MemoryReport) -> Table:
    """Return one row for each component, its bar beginning where the last ended."""
    sums = groups(found.items)
    total = sum(sums.values())
    full = max(total, found.limit_bytes)
    rows, start = [], 0
    for (phase, component), size in sums.items():
        bar = _bar(start, start + size, full)
        rows.append((component, phase, f"{size:,}", f"{size / GIB:.2f}", bar))
        start += size
    for name, size in (("peak", total), ("device limit", found.limit_bytes)):
        bar = _bar(0, size, full)
        rows.append((name, "", f"{size:,}", f"{size / GIB:.2f}", bar))
    columns = (
        Column("component", "left"),
        Column("phase", "left"),
        Column("bytes"),
        Column("GiB"),
        Column("waterfall", "left"),
    )
    return Table(columns, tuple(rows), title=f"Pipeline rank {found.rank}")


def per_rank(sizes: Mapping[int, int], limit: int) -> Table:
    """Return one row for each pipeline rank.

    Parameters
    ----------
    sizes
        Peak bytes by rank.
    limit
        What a process can use on the device, in bytes.
    """
    full = max(limit, *sizes.values())
    rows = tuple(
        (str(rank), f"{size:,}", f"{size / GIB:.2f}", _bar(0, size, full))
        for rank, size in sizes.items()
    )
    columns = (Column("rank"), Column("bytes"), Column("GiB"), Column("peak", "left"))
    return Table(columns, rows, title="Each pipeline rank")


def phases(found: MemoryReport) -> Table:
    """Return one row for each phase of the listed rank."""
    sums = by_phase(found.items)
    total = sum(sums.values())
    rows = tuple(
        (phase, f"{size:,}", f"{size / GIB:.2f}", f"{100 * size / total:.1f}%")
        for phase, size in sums.items()
        if size
    )
    columns = (Column("phase", "left"), Column("bytes"), Column("GiB"), Column("share"))
    return Table(columns, rows, title="Each phase")


def _bar(start: int, end: int, full: int) -> str:
    """Draw a bar; one that is there at all has at least one character."""
    first, last = start * WIDTH // full, -(-end * WIDTH // full)
    return " " * first + "█" * max(last - first, 1)
