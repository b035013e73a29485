"""How a command ends: printed as a table or as JSON, and written to a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..document import answer as answer_document
from ..document import with_space
from ..files import prepare, to_json, write
from ..table import Table, say, show
from ..verify.seal import digest
from ..words import explanation, question

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ...solver.answer import Answer, Infeasible
    from ...solver.space import Space
    from ..document import Document

OK, INFEASIBLE = 0, 1


def finish(
    document: Document,
    *,
    title: str,
    tables: Sequence[Table] = (),
    text: str,
    as_json: bool,
    folder: Path | None = None,
    name: str = "answer",
) -> None:
    """Print a result, and write it to a folder if one was given.

    Parameters
    ----------
    document
        The JSON form.
    title, tables, text
        The form for a person: a line, rows, a paragraph.
    as_json
        Whether to print the JSON form.
    folder
        Where to write both forms as ``NAME.json`` and ``NAME.txt``.
    name
        What the files are called.
    """
    if "space_content" in document:
        document = {**document, "digest": digest(document)}
    if folder is not None:
        parts = [title, *(t.plain() for t in tables), text]
        write(folder / f"{name}.json", to_json(document))
        write(folder / f"{name}.txt", "\n\n".join(filter(None, parts)) + "\n")
    if as_json:
        print(to_json(document), end="")
        return
    say(title)
    for table in tables:
        print()
        show(table)
    if text:
        print()
        say(text)


def refuse(
    value: Infeasible,
    *,
    as_json: bool,
    nodes: int | None = None,
    folder: Path | None = None,
    space: Space | None = None,
) -> int:
    """End with a proof that nothing is feasible; ``nodes`` would be enough."""
    document = answer_document(value)
    if space is not None:
        document = with_space(document, space)
    document["infeasible"]["enough_nodes"] = nodes
    finish(
        document,
        title=question(value.problem),
        text=explanation(value, nodes),
        as_json=as_json,
        folder=folder,
    )
    return INFEASIBLE


def accept(
    value: Answer,
    table: Table,
    text: str,
    *,
    as_json: bool,
    folder: Path | None = None,
    verdicts: Sequence[Document] = (),
    space: Space | None = None,
) -> int:
    """End with an answer; ``verdicts`` are those of its configurations, in order."""
    document = answer_document(value)
    for shown, found in zip(document["answers"], verdicts, strict=False):
        shown["verdict"] = found
    if space is not None:
        # Last, as the digest is over all that was said before.
        document = with_space(document, space)
    finish(
        document,
        title=question(value.problem),
        tables=[table],
        text=text,
        as_json=as_json,
        folder=folder,
    )
    return OK


__all__ = ["INFEASIBLE", "OK", "accept", "finish", "prepare", "refuse"]
