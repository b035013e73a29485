"""``shardproof diff``: where the bytes of two configurations part."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ...models.errors import InputError
from ...models.units import GIB, gib
from ..document import ANSWER, MEMORY
from ..one import MemoryReport, memory_one
from ..request import Request
from ..saved import load_answer, problem_of, read_json
from ..table import Column, Table
from .layout_text import layout_pins, pins_of
from .memory import document as document_of
from .report import OK, finish

if TYPE_CHECKING:
    from ...models.problem import Problem
    from ..document import Document

#: An item's name and phase, under which its bytes are added up.
_Key = tuple[str, str]


def run(first: str, second: str) -> int:
    """Read both, print the differences, and return the exit code.

    Either may be a saved document, or a layout of the other one's problem.
    """
    before, after = _documents(first, second)
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


def _documents(first: str, second: str) -> tuple[Document, Document]:
    """Return the memory of both.

    Raises
    ------
    InputError
        If neither states a problem, or one is no document and no layout.
    """
    one, other = (None if _is_layout(t) else _read(Path(t)) for t in (first, second))
    if one is None and other is None:
        raise InputError(
            f"one of the two must be a document, which states the problem, got "
            f"{first[:80]} and {second[:80]}; write one with `shardproof memory "
            "... --json`"
        )
    before = one or _laid_out(other or {}, first)
    return before, other or _laid_out(before, second)


def _is_layout(text: str) -> bool:
    return "=" in text and not Path(text).is_file()


def _laid_out(document: Document, text: str) -> Document:
    """Return the memory of another layout of a document's problem."""
    pins = dict(part.partition("=")[::2] for part in layout_pins(text))
    return _memory(problem_of(document["problem"]), pins)


def _memory(problem: Problem, pins: dict[str, str]) -> Document:
    """Return the memory of one layout, all of whose rules hold.

    Raises
    ------
    InputError
        If it breaks a rule.
    """
    training = problem.training
    request = Request(
        model=problem.architecture,
        cluster=problem.cluster,
        seq_len=training.seq_len,
        global_batch=training.global_batch,
        dialect=problem.dialect,
        precision=training.precision,
        optimizer=training.optimizer,
        pins=pins,
    )
    found = memory_one(request)
    if not isinstance(found, MemoryReport):
        reasons = "; ".join(clash.sentence for clash in found.clashes)
        raise InputError(f"the layout must be legal, got one where {reasons}")
    return document_of(found)


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
    """Read a document of memory, or make that of a saved answer's first layout.

    Raises
    ------
    InputError
        If the file cannot be read or is another document.
    """
    way_out = "write it with `shardproof memory ... --json`"
    found = read_json(path, MEMORY, ANSWER, way_out=way_out)
    if found["schema"] == ANSWER:
        saved = load_answer(path)
        if not saved.layouts:
            raise InputError(f"{path} holds no configuration; {way_out}")
        return _memory(saved.problem, pins_of(saved.layouts[0]))
    try:
        _bytes(found), _changed(found, found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({error!r}); {way_out}") from None
    return found
