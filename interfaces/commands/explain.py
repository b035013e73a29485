"""``shardproof explain``: why nothing fits, or why one configuration does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.layout import axis_label
from ...models.units import gib
from ..document import EXPLANATION, WHY, Document, infeasible, problem
from ..progress import Progress
from ..request import assignment, code_of, rows
from ..table import Column, Table
from ..words import LEFT, SHOWN, correction, layout, question, seconds
from .report import INFEASIBLE, OK, finish, prepare

if TYPE_CHECKING:
    from pathlib import Path

    from ...models.layout import Layout
    from ...models.problem import Problem
    from ...solver.answer import Clash, Infeasible
    from ...solver.explain.remedies import Remedy
    from ...solver.explain.resolve import Checked
    from ...solver.explain.why import Neighbour, Why
    from ..request import Request

_MOST = 20


def run(
    request: Request,
    *,
    why: str | None,
    check: bool,
    top: int,
    as_json: bool,
    out: str | None,
) -> int:
    """Explain, print, and return the exit code: 0 if there is nothing to explain."""
    number = rows(top, least=0)
    folder = prepare(out)
    if why is not None:
        return _run_why(request, why, number, as_json=as_json, folder=folder)
    return _run_request(request, check=check, as_json=as_json, folder=folder)


def _run_request(
    request: Request, *, check: bool, as_json: bool, folder: Path | None
) -> int:
    from ...solver.domains import bind
    from ...solver.explain import explain_request, lift
    from ...solver.explain.remedies import remedies
    from ...solver.explain.resolve import check as resolve
    from ...solver.space import load_space
    from ...solver.vector import legal_points

    asked, space = request.problem(), request.in_space()
    domains = bind(asked, space)
    lifted = lift(domains, load_space(request.space))
    with Progress() as progress:
        found = explain_request(lifted, legal_points(domains).count)
        feasible = any(not c.rules for c in found.corrections)
        ways = () if feasible else remedies(lifted, found, progress)
        checked = resolve(lifted, found) if check else None
    finish(
        explanation_document(found, ways, checked, lifted_sentences(lifted, found)),
        title=question(asked),
        text=_text(found, ways, checked, lifted_sentences(lifted, found)),
        as_json=as_json,
        folder=folder,
        name="explanation",
    )
    if checked is not None and checked.wrong:
        raise AssertionError(f"an explanation does not hold: {checked.wrong[0]}")
    return OK if feasible else INFEASIBLE


def lifted_sentences(lifted: object, found: Infeasible) -> dict[str, str]:
    """Return the sentence of every constraint that takes part in a conflict."""
    from ...solver.explain.explanation import sentences
    from ...solver.explain.limits import Request as Lifted

    assert isinstance(lifted, Lifted)
    names = tuple(dict.fromkeys(n for c in found.corrections for n in c.rules))
    return {c.rule: c.sentence for c in sentences(lifted, names, found.corrections)}


def explanation_document(
    found: Infeasible,
    ways: tuple[Remedy, ...],
    checked: Checked | None,
    sentences: dict[str, str],
) -> Document:
    """Return what ``shardproof explain --json`` prints."""
    content = infeasible(found)
    feasible = any(not c.rules for c in found.corrections)
    return {
        "schema": EXPLANATION,
        "problem": content["problem"],
        "feasible": feasible,
        "sentences": sentences,
        "infeasible": None if feasible else content["infeasible"],
        "remedies": [_remedy(way) for way in ways],
        "checked": None
        if checked is None
        else {"solved": checked.solved, "wrong": list(checked.wrong)},
    }


def _remedy(way: Remedy) -> Document:
    return {
        "kind": way.kind,
        "amount": way.amount,
        "least": way.least,
        "sentence": way.sentence,
        "values": {n: [axis_label(n, c) for c in codes] for n, codes in way.values},
        "layout": way.witness.labels(),
    }


def _text(
    found: Infeasible,
    ways: tuple[Remedy, ...],
    checked: Checked | None,
    sentences: dict[str, str],
) -> str:
    if any(not c.rules for c in found.corrections):
        return (
            f"feasible: {found.space} has configurations that {found.problem.dialect} "
            f"accepts and that fit, such as {layout(found.corrections[0].witness)}"
        )
    number, dialect = found.legal_count, found.problem.dialect
    accepted = f"space {found.space} that {dialect} accepts"
    lines = [
        f"infeasible: none of the {number:,} configurations of {accepted} fits."
        if number
        else f"infeasible: there is no configuration of {accepted}.",
        "",
        "Constraints that take part:",
        *(f"  {name}: {sentence}" for name, sentence in sentences.items()),
        "",
        f"Minimal conflicts ({len(found.conflicts)}), each excludes everything:",
        *_listed([", ".join(c) for c in found.conflicts]),
        "",
        f"Minimal corrections ({len(found.corrections)}), any one is enough:",
        *_listed([correction(c) for c in found.corrections]),
    ]
    if ways:
        lines += ["", "Changes that are enough, each re-solved:"]
        lines += [f"  {_way(way)}" for way in ways]
    if checked is not None:
        lines += [
            "",
            f"Checked: {checked.solved} requests re-solved, {_agree(checked)}.",
        ]
    return "\n".join(lines)


def _agree(checked: Checked) -> str:
    return f"{len(checked.wrong)} differ" if checked.wrong else "all as stated"


def _listed(texts: list[str]) -> list[str]:
    shown = [f"  {text}" for text in texts[:_MOST]]
    if len(texts) > _MOST:
        shown.append(f"  ... and {len(texts) - _MOST} more (--json)")
    return shown


def _way(way: Remedy) -> str:
    rest = "" if way.least else " (fewer may do)"
    return f"{way.sentence}{rest}: {layout(way.witness)}"


def _run_why(
    request: Request, text: str, top: int, *, as_json: bool, folder: Path | None
) -> int:
    from ...solver.explain.why import why

    asked = request.problem()
    given = dict(assignment("--why", part) for part in text.split(","))
    partial = {name: code_of(name, value) for name, value in given.items()}
    at = plain_layout(asked, partial)
    found = why(asked, request.in_space(), at, top=top)
    finish(
        why_document(found),
        title=question(asked),
        tables=[neighbours(found)] if found.neighbours else (),
        text=_why_text(found),
        as_json=as_json,
        folder=folder,
        name="why",
    )
    return INFEASIBLE if found.clashes else OK


def plain_layout(asked: Problem, partial: dict[str, int]) -> Layout:
    """Fill in what a user left out; axes that do not multiply are rounded down."""
    from ...models.errors import InputError
    from ...solver.explain.why import rounded_layout
    from ...solver.single import complete_layout

    try:
        return complete_layout(asked, partial)
    except InputError:
        one = complete_layout(asked, {})
        vpp = partial.get("vpp", 1)
        point = {**one.point(), "sp": int(partial.get("tp", 1) > 1)}
        point |= {"schedule": int(vpp > 1), **partial}
        return rounded_layout(asked, point)


def why_document(found: Why) -> Document:
    """Return what ``shardproof explain --why ... --json`` prints."""
    return {
        "schema": WHY,
        "problem": problem(found.problem),
        "layout": found.layout.labels(),
        "clashes": [_clash(c) for c in found.clashes],
        "peak_bytes": found.peak_bytes,
        "missing_bytes": found.missing_bytes,
        "neighbours": [
            {
                "layout": n.layout.labels(),
                "changed": list(n.changed),
                "steps": n.steps,
                "peak_bytes": n.peak_bytes,
                "step_time_s": n.projection.step_time_s,
            }
            for n in found.neighbours
        ],
    }


def _clash(clash: Clash) -> Document:
    return {"rule": clash.rule, "sentence": clash.sentence}


def neighbours(found: Why) -> Table:
    """Return one row for each neighbour, the nearest first."""
    axes = tuple(Column(n, "left" if n in LEFT else "right") for n in SHOWN)
    figures = (Column("changed", "left"), Column("peak"), Column("step time"))
    return Table((*axes, *figures), tuple(_row(n) for n in found.neighbours))


def _row(one: Neighbour) -> tuple[str, ...]:
    point = one.layout.point()
    return (
        *(axis_label(n, point[n]) for n in SHOWN),
        " ".join(one.changed),
        gib(one.peak_bytes),
        seconds(one.projection.step_time_s),
    )


def _why_text(found: Why) -> str:
    if not found.clashes:
        return "The configuration breaks no rule and fits: " + layout(found.layout)
    number = len(found.clashes)
    lines = [
        f"{layout(found.layout)}: {number} {'rule' if number == 1 else 'rules'} broken"
    ]
    lines += [f"  {c.rule}: {c.sentence}" for c in found.clashes]
    if found.missing_bytes:
        missing = found.missing_bytes
        lines.append(
            f"Missing: {missing:,} bytes ({gib(missing)}) on the fullest rank."
        )
    if found.neighbours:
        lines.append("Above: the nearest configurations that are legal and fit.")
    else:
        lines.append("No configuration within five axes of it is legal and fits.")
    return "\n".join(lines)
