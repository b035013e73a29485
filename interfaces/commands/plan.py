"""``shardproof plan``: the fastest configurations that fit, with the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..growth import enough_nodes
from ..progress import Progress
from ..request import rows
from ..verdicts import CONFIDENCE, VERDICTS, sentence, sure, verdict_of
from ..words import certificate, choices
from .report import accept, prepare, refuse

if TYPE_CHECKING:
    from ..request import Request


def run(
    request: Request,
    *,
    top: int,
    as_json: bool,
    out: str | None,
    confidence: float = CONFIDENCE,
) -> int:
    """Answer, print, and return the exit code."""
    from ...solver.answer import Infeasible
    from ...solver.plan import plan

    number = rows(top, least=1)
    sure(confidence)
    problem, space = request.problem(), request.in_space()
    folder = prepare(out)
    with Progress() as progress:
        found = plan(problem, space, top=number, progress=progress)
        nodes = None
        if isinstance(found, Infeasible) and found.missing_bytes is not None:
            nodes = enough_nodes(problem, space, progress)
    if isinstance(found, Infeasible):
        return refuse(found, nodes=nodes, as_json=as_json, folder=folder, space=space)
    table = choices(found.answers, problem)
    first = found.answers[:VERDICTS]
    verdicts = [verdict_of(problem, c.layout, confidence) for c in first]
    text = "\n".join((certificate(found), *map(sentence, verdicts[:1])))
    return accept(
        found,
        table,
        text,
        as_json=as_json,
        folder=folder,
        verdicts=verdicts,
        space=space,
    )
