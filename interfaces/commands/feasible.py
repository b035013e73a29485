"""``shardproof enumerate``: every configuration that is allowed and fits."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from ...models.errors import InputError, unknown_name
from ...models.layout import OPTIONAL, axis_label
from ...models.units import GIB
from ..document import FEASIBLE_SET, Document, problem, with_space
from ..progress import Progress
from ..request import rows
from ..table import Column, Table
from ..words import LEFT, SHOWN, question
from .report import INFEASIBLE, OK, finish, prepare

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    count: bool = False,
) -> int:
    """Enumerate, print, and return the exit code: 1 if the set is empty."""
    from ...solver.feasible import Engine, enumerate_feasible

    if engine not in get_args(Engine):
        raise unknown_name("engine", engine, get_args(Engine))
    number = rows(top, least=0)
    asked, space = request.problem(), request.in_space()
    table_file = Path(out) if out and out.endswith(".parquet") else None
    folder = None if table_file else prepare(out)
    with Progress() as progress:
        found = enumerate_feasible(
            asked,
            space,
            engine=cast("Engine", engine),
            rules_only=rules_only,
            progress=progress,
        )
    if table_file is not None:
        from ..feasible_parquet import write_parquet

        write_parquet(table_file, found)
    if count:
        print(found.count)
        return OK if found.count else INFEASIBLE
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


def fill(
    space: str, given: Mapping[str, str | int | None], usual: Mapping[str, str]
) -> dict[str, str | int]:
    """Complete what the command line left out from the workload of the space.

    Parameters
    ----------
    space
        A shipped space's name or a YAML file.
    given
        What was given, None where it was not.
    usual
        What stands where neither says anything.

    Raises
    ------
    InputError
        If neither the command line nor the space says something that is needed.
    """
    from ...solver.space import load_space

    said = {n: v for n, v in given.items() if v is not None}
    if len(said) < len(given):
        said = {**usual, **load_space(space).workload, **said}
    missing = [
        n for n in ("model", "cluster", "seq_len", "global_batch") if n not in said
    ]
    if missing:
        raise InputError(
            f"enumerate needs {', '.join(missing)}: give them, or a --space that has a "
            f"workload, which {space} has not"
        )
    return said


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
    listed = {n for layout, _ in shown for n in layout.written() if n in OPTIONAL}
    names = (*SHOWN, *(n for n in OPTIONAL if n in listed))
    columns = [
        Column(n, "left" if n in LEFT or n in listed else "right") for n in names
    ]
    cells = []
    for layout, peak in shown:
        point = layout.point()
        line = [axis_label(n, point[n]) for n in names]
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
