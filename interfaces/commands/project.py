"""``shardproof project``: one configuration, its memory and its step time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.units import gib
from ..one import advice, project_one
from ..table import Column, Table
from ..verdicts import CONFIDENCE, sentence, sure, verdict_of
from ..words import calibration, choices, seconds
from .report import accept, prepare, refuse

if TYPE_CHECKING:
    from ...solver.answer import Answer, Projection
    from ..request import Request


def run(
    request: Request,
    *,
    as_json: bool,
    out: str | None,
    confidence: float = CONFIDENCE,
) -> int:
    """Project, print, and return the exit code."""
    from ...solver.answer import Infeasible
    from ...solver.single import space_of

    sure(confidence)
    folder = prepare(out)
    found = project_one(request)
    if isinstance(found, Infeasible):
        return refuse(found, as_json=as_json, folder=folder)
    table = choices(found.answers, found.problem)
    verdict = verdict_of(found.problem, found.answers[0].layout, confidence)
    text = "\n\n".join((_text(found), sentence(verdict)))
    return accept(
        found,
        table,
        text,
        as_json=as_json,
        folder=folder,
        verdicts=[verdict],
        space=space_of(found.answers[0].layout),
    )


def _text(found: Answer) -> str:
    choice = found.answers[0]
    paragraphs = [breakdown(choice.projection).plain(), calibration(found)]
    per_rank = ", ".join(gib(b) for b in choice.memory.per_rank)
    paragraphs.insert(0, f"Peak of each pipeline rank: {per_rank}.")
    for ignored in advice(found.problem, choice.layout):
        paragraphs.append(f"Against advice {ignored.rule}: {ignored.sentence}.")
    return "\n\n".join(paragraphs)


def breakdown(projection: Projection) -> Table:
    """Return one row for each part of the step time, longest first."""
    parts = sorted(projection.breakdown.items(), key=lambda part: -part[1])
    rows = [
        (name.replace("_", " "), seconds(t), f"{t / projection.step_time_s:.1%}")
        for name, t in parts
        if t > 0
    ]
    columns = (Column("part of the step", "left"), Column("time"), Column("share"))
    return Table(columns, tuple(rows))
