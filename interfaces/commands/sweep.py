"""``shardproof sweep``: every model on every cluster of a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...models.errors import InputError
from ..files import prepare, to_json, write
from ..progress import Progress
from ..table import Column, Table
from ..words import seconds
from .report import OK, finish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def run(path: str, *, runner: str, workers: int | None, out: str, as_json: bool) -> int:
    """Sweep, print, and return the exit code.

    Raises
    ------
    InputError
        If the file, the runner or the number of workers is none.
    """
    from ..sweep import chunks_of, read_sweep, sweep
    from ..sweep.runners import runner as known

    known(runner)
    number = workers or len(os.sched_getaffinity(0))
    if not 1 <= number <= 10_000:
        raise InputError(f"--workers is a whole number in 1..10,000, got {number:,}")
    chunks = chunks_of(read_sweep(Path(path)))
    folder = prepare(out)
    assert folder is not None
    with Progress() as progress:
        found = sweep(chunks, folder, engine=runner, workers=number, progress=progress)
    write(folder / "sweep.json", to_json(found))
    finish(
        found,
        title=f"{len(chunks):,} plans, kept in {folder}",
        tables=[table(found["plans"])],
        text="Each row is the fastest of a complete set; `sweep.json` has the proofs.",
        as_json=as_json,
    )
    return OK


def table(plans: Sequence[Mapping[str, Any]]) -> Table:
    """Return one row for each plan."""
    figures = ("fit", "tokens/s/GPU", "step time", "tp", "pp", "vpp", "cp", "ep", "dp")
    columns = (Column("model", "left"), Column("cluster", "left"))
    rows = tuple(_row(plan) for plan in plans)
    return Table((*columns, *map(Column, figures)), rows)


def _row(plan: Mapping[str, Any]) -> tuple[str, ...]:
    asked = (plan["chunk"]["model"], plan["chunk"]["cluster"])
    if "error" in plan:
        return (*asked, "not asked: " + plan["error"][:40], *[""] * 8)
    answer = plan["answer"]
    if not answer["answers"]:
        return (*asked, "0", *[""] * 8)
    best = answer["answers"][0]
    found, axes = best["projection"], best["layout"]
    return (
        *asked,
        f"{answer['certificate']['feasible_count']:,}",
        f"{found['tokens_per_s_per_gpu']:,.0f}",
        seconds(found["step_time_s"]),
        *(str(axes[n]) for n in ("tp", "pp", "vpp", "cp", "ep", "dp")),
    )
