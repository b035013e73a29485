"""``shardproof robust``: what becomes of the best when the machine differs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...models.errors import InputError
from ..document import Document, choice, problem
from ..progress import Progress
from ..table import Column, Table
from ..words import layout, question, seconds
from .report import OK, finish, prepare

if TYPE_CHECKING:
    from ...solver.robust import Neighbour, Rival, Robustness
    from ..request import Request

ROBUST = "shardproof/robust@1"
_SHOWN = 10


def run(
    request: Request, *, draws: int, seed: int, as_json: bool, out: str | None
) -> int:
    """Try the best configuration, print, and return the exit code."""
    from ...solver.robust import robust

    if not 0 <= seed < 2**63:
        raise InputError(f"--seed is a whole number from 0 to 2**63 - 1, got {seed}")
    asked, space = request.problem(), request.in_space()
    folder = prepare(out)
    with Progress() as progress:
        found = robust(asked, space, draws=draws, seed=seed, progress=progress)
    if found is None:
        from ...solver.answer import Infeasible
        from ...solver.plan import plan
        from .report import refuse

        why = plan(asked, space, top=1)
        assert isinstance(why, Infeasible)
        return refuse(why, as_json=as_json, folder=folder)
    finish(
        document(found),
        title=question(asked),
        tables=[_neighbours(found.neighbours), _rivals(found.rivals)],
        text=text(found),
        as_json=as_json,
        folder=folder,
        name="robust",
    )
    return OK


def _neighbours(found: tuple[Neighbour, ...]) -> Table:
    rows = [
        (n.axis, n.value, "not legal or too large")
        if n.layout is None
        else (n.axis, n.value, f"{n.slower:+.1%}")
        for n in found
    ]
    columns = (Column("axis", "left"), Column("one step"), Column("step time"))
    return Table(columns, tuple(rows), title="One step on each axis")


def _rivals(found: tuple[Rival, ...]) -> Table:
    rows = [
        (
            f"{r.wins:.1%}",
            f"{r.regret_mean:.1%}",
            f"{r.regret_p90:.1%}",
            seconds(r.step_time_s),
            layout(r.layout),
        )
        for r in found[:_SHOWN]
    ]
    columns = (
        Column("best in"),
        Column("mean regret"),
        Column("90th percentile"),
        Column("step time"),
        Column("configuration", "left", wrap=True),
    )
    return Table(columns, tuple(rows), title="Machines drawn within the band")


def text(found: Robustness) -> str:
    """Say what the tables mean."""
    own = next(r for r in found.rivals if r.layout == found.best.layout)
    lines = [
        f"{found.shape}: {layout(found.best.layout)} is the fastest of {found.draws:,} "
        f"machines in {own.wins:.1%}, and {own.regret_mean:.2%} slower than the "
        "fastest on average. Each machine has its matrix units, memory, scale-up "
        f"links and network drawn apart, 90 % of them within {found.band:.0%}.",
    ]
    if found.one_node_less is not None:
        less = found.one_node_less.projection.step_time_s
        rise = less / found.best.projection.step_time_s - 1
        lines.append(
            f"Without one node the best is {layout(found.one_node_less.layout)}, "
            f"{seconds(less)} a step ({rise:+.1%})."
        )
    elif found.problem.cluster.nodes > 1:
        lines.append("Without one node nothing fits with this batch.")
    return "\n".join(lines)


def document(found: Robustness) -> Document:
    """Return what ``shardproof robust --json`` prints."""
    return {
        "schema": ROBUST,
        "problem": problem(found.problem),
        "best": choice(found.best),
        "shape": found.shape,
        "band": found.band,
        "draws": found.draws,
        "neighbours": [
            {
                "axis": n.axis,
                "value": n.value,
                "layout": n.layout.labels() if n.layout else None,
                "slower": n.slower if math.isfinite(n.slower) else None,
            }
            for n in found.neighbours
        ],
        "rivals": [
            {
                "layout": r.layout.labels(),
                "step_time_s": r.step_time_s,
                "wins": r.wins,
                "regret_mean": r.regret_mean,
                "regret_p90": r.regret_p90,
            }
            for r in found.rivals
        ],
        "one_node_less": choice(found.one_node_less) if found.one_node_less else None,
    }
