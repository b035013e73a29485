"""``shardproof diff``: where the bytes of two configurations part."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...models.errors import InputError
from ...models.units import GIB, gib
from ..document import MEMORY
from ..table import Column, Table
from .report import OK, finish

if TYPE_CHECKING:
    from ..document import Document

#: An item's name and phase, under which its bytes are added up.
_Key = tuple[str, str]


def run(first: str, second: str) -> int:
    """Read both documents, print the differences, and return the exit code."""
    before, after = _read(Path(first)), _read(Path(second))
    table, total = differences(before, after)
    finish(
        {},
        title=_changed(before, after),
        tables=[table],
        text=f"The second needs {gib(abs(total))} ({abs(total):,} bytes) "
        f"{'more' if total > 0 else 'less'}."
        if total
        else "Both need the same.",
        as_json=False,
    )
    return OK


def differences(before: Document, after: Document) -> tuple[Table, int]:
    """Return the items that differ, the largest difference first, and their sum.

    Parameters
    ----------
    before, after
        Documents of ``shardproof memory --json``.
    """
    one, other = _bytes(before), _bytes(after)
    changes = {key: other[key] - one[key] for key in {*one, *other}}
    largest_first = sorted(changes.items(), key=lambda kv: (-abs(kv[1]), kv[0]))
    rows = [
        (name, phase, *_figures(one[name, phase], other[name, phase], change))
        for (name, phase), change in largest_first
        if change
    ]
    total = sum(changes.values())
    rows.append(("total", "", *_figures(one.total(), other.total(), total)))
    columns = (
        Column("item", "left"),
        Column("phase", "left"),
        Column("first, bytes"),
        Column("second, bytes"),
        Column("difference"),
        Column("GiB"),
    )
    return Table(columns, tuple(rows)), total


def _figures(one: int, other: int, change: int) -> tuple[str, str, str, str]:
    return f"{one:,}", f"{other:,}", f"{change:+,}", f"{change / GIB:+.2f}"


def _bytes(document: Document) -> Counter[_Key]:
    sums: Counter[_Key] = Counter()
    for item in document["items"]:
        sums[item["name"], item["phase"]] += item["bytes"]
    return sums


def _changed(before: Document, after: Document) -> str:
    """Name the axes that differ, and the ranks that are listed."""
    one, other = (dict(d["layout"], rank=d["rank"]) for d in (before, after))
    axes = [k for k in {**one, **other} if one.get(k) != other.get(k)]
    changes = (f"{k} {one.get(k)} -> {other.get(k)}" for k in axes)
    return ", ".join(changes) or "Two files of one layout and rank"


def _read(path: Path) -> Document:
    """Read a document of ``shardproof memory --json``.

    Raises
    ------
    InputError
        If the file cannot be read or is another document.
    """
    way_out = "write it with `shardproof memory ... --json`"
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"cannot read {path} ({reason}); {way_out}") from None
    got = found.get("schema") if isinstance(found, dict) else None
    if got != MEMORY:
        raise InputError(
            f"{path} must hold a {MEMORY} document, got {got!r}; {way_out}"
        )
    try:
        _bytes(found), _changed(found, found)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error!r}); {way_out}") from None
    return dict(found)
