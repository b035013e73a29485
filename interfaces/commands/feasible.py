"""``shardproof enumerate``: every configuration that is allowed and fits."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, cast, get_args

from ...models.errors import unknown_name
from ...models.layout import axis_label
from ...models.units import GIB
from ..document import FEASIBLE_SET, Document, problem, with_space
from ..progress import Progress
from ..request import rows
from ..table import Column, Table
from ..words import LEFT, SHOWN, question
from .report import INFEASIBLE, OK, finish, prepare

if TYPE_CHECKING:
    from ...models.layout import Layout
    from ...solver.feasible import FeasibleSet
    from ..request import Request

#: Configurations shown, each with its peak in bytes (None where rules alone count).
Shown = list[tuple["Layout", int | None]]


def run(
    request: Request,
    *,
    engine: str,
    rules_only: bool,
    top: int,
    as_json: bool,
    out: str | None,
) -> int:
    """Enumerate, print, and return the exit code: 1 if the set is empty."""
    from ...solver.feasible import Engine, enumerate_feasible

    if engine not in get_args(Engine):
        raise unknown_name("engine", engine, get_args(Engine))
    number = rows(top, least=0)
    asked, space = request.problem(), request.in_space()
    folder = prepare(out)
    with Progress() as progress:
        found = enumerate_feasible(
            asked,
            space,
            engine=cast("Engine", engine),
            rules_only=rules_only,
            progress=progress,
        )
    shown = first(found, number)
    if folder is not None:
        from ..feasible_files import write_set

        write_set(folder, found)
    finish(
        with_space(document(found, shown), found.space),
        title=question(asked),
        tables=[table(shown)] if shown else (),
        text=_text(found, len(shown)),
        as_json=as_json,
        folder=folder,
        name="feasible-set",
    )
    return OK if found.count else INFEASIBLE


def first(found: FeasibleSet, number: int) -> Shown:
    """Return the first configurations in lexicographic order of the axes."""
    layouts = list(islice(found.layouts(), number))
    if found.rules_only or not layouts:
        return [(layout, None) for layout in layouts]
    from ..feasible_files import peaks

    points = [layout.point() for layout in layouts]
    columns = {name: [p[name] for p in points] for name in points[0]}
    return list(zip(layouts, map(int, peaks(found, columns)), strict=True))


def table(shown: Shown) -> Table:
    """Return one row for each configuration."""
    columns = [Column(n, "left" if n in LEFT else "right") for n in SHOWN]
    cells = []
    for layout, peak in shown:
        point = layout.point()
        line = [axis_label(n, point[n]) for n in SHOWN]
        cells.append((*line, "-" if peak is None else f"{peak / GIB:.2f}"))
    return Table((*columns, Column("peak GiB")), tuple(cells))


def _text(found: FeasibleSet, shown: int) -> str:
    fits = "" if found.rules_only else f", {found.count:,} of them fit"
    rest = found.count - shown
    return (
        f"complete: {found.space.label} has {found.legal_count:,} configurations that "
        f"{found.problem.dialect} accepts{fits}; found by {_ENGINES[found.engine]}. "
        f"sha256 of the set: {found.content_hash}"
        + (f"\n{rest:,} more rows: --top K or --out DIR" if rest > 0 else "")
        + ("" if found.count else "\ninfeasible: `shardproof plan` says why")
    )


_ENGINES = {
    "vector": "arrays",
    "cpsat": "CP-SAT",
    "both": "arrays and by CP-SAT, which agree",
}


def document(found: FeasibleSet, shown: Shown) -> Document:
    """Return what ``shardproof enumerate --json`` prints."""
    return {
        "schema": FEASIBLE_SET,
        "problem": problem(found.problem),
        "space": found.space.label,
        "space_hash": found.space.content_hash,
        "engine": found.engine,
        "rules_only": found.rules_only,
        "legal_count": found.legal_count,
        "count": found.count,
        "content_hash": found.content_hash,
        "rows": [
            {"layout": layout.labels(), "peak_bytes": peak} for layout, peak in shown
        ],
    }
