"""``shardproof report``: a saved answer as one page, and as a trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...models.errors import InputError
from ..files import to_json, write
from ..saved import Saved, load_answer, read_json
from .pareto import FRONT
from .report import OK

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Configurations up to which the front is found for the page at once.
_QUICK = 20_000


def run(answer: str, *, front: str | None, out: str | None, trace: str | None) -> int:
    """Write what was asked for, and return the exit code.

    Raises
    ------
    InputError
        If nothing was asked for, or a file cannot be read or written.
    """
    if out is None and trace is None:
        raise InputError(
            "report writes a page or a trace: give --out report.html or "
            "--trace trace.json"
        )
    saved = load_answer(Path(answer))
    if trace is not None:
        from ..trace import trace as traced

        document = traced(saved.problem, saved.layouts[0])
        _write(Path(trace), json.dumps(document, allow_nan=False) + "\n")
    if out is not None:
        from ..page import page

        _write(Path(out), page(saved, _front(saved, front)))
    return OK


def _front(saved: Saved, path: str | None) -> Mapping[str, Any] | None:
    """Read a front, or find it where that takes no time.

    Raises
    ------
    InputError
        If the file is no front, or one of another problem.
    """
    if path is not None:
        way_out = "write it with `shardproof pareto ... --json`"
        found = read_json(Path(path), FRONT, way_out=way_out)
        if found.get("problem") != saved.document["problem"]:
            raise InputError(
                f"{path} must be a front of the answer's own problem, got another one; "
                f"{way_out}"
            )
        return found
    return _quick_front(saved)


def _quick_front(saved: Saved) -> Mapping[str, Any] | None:
    from ...solver.pareto import front_over_sizes
    from ...solver.space import load_space
    from .pareto import document

    proof = saved.document["certificate"]
    try:
        space = load_space(proof["space"].partition("@")[0])
    except InputError:
        return None
    if space.content_hash != proof["space_hash"] or proof["feasible_count"] > _QUICK:
        return None
    found = front_over_sizes([saved.problem], space, ("memory", "throughput"))
    plain: dict[str, Any] = json.loads(to_json(document(found)))
    return plain


def _write(path: Path, text: str) -> None:
    if not path.name or path.is_dir():
        raise InputError(f"the page and the trace are files, got {str(path)[:80]!r}")
    write(path, text)
    print(f"wrote {path}")
