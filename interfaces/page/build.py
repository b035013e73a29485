"""The page of an answer: what was found, why, and how far it can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...models.errors import InputError
from ...models.units import GIB, gib
from ..words import certificate, choices, question
from . import figures, html
from .ranks import groups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...solver.answer import Answer
    from ..saved import Saved

#: Pipeline ranks drawn at most.
MOST_RANKS = 16
LIMITS = """\
Proven: the rows are the fastest of all configurations counted above, by the step time \
of this planner's own simulation, and each fits by the ledger drawn below. Nothing in \
that space was skipped.
Not proven: that the machine keeps to the simulation. The band says how far measured \
steps were from projected ones; rows closer than their bands may change places. \
Configurations outside the space, and options that it does not list, were not \
looked at."""


def page(saved: Saved, front: Mapping[str, Any] | None) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    saved
        The answer.
    front
        A document of ``shardproof pareto --json``, or None to draw the answer's
        own configurations.

    Raises
    ------
    InputError
        If plotly is not installed.
    """
    from ..saved import answer_of

    answer = answer_of(saved)
    title = question(answer.problem)
    numbered = _Figures()
    body = [
        html.heading(title, 1),
        html.table(choices(answer.answers, answer.problem)),
        *_front(numbered, saved, front, answer),
        *_memory(numbered, answer),
        *_time(numbered, answer),
        html.heading("What was proven, and what was not"),
        html.paragraph(certificate(answer)),
        html.paragraph(LIMITS),
    ]
    return html.document(f"shardproof: {answer.problem.architecture.name}", _js(), body)


class _Figures:
    """Gives each figure of a page its own number."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, spec: figures.Spec, label: str) -> str:
        self._count += 1
        return html.figure(self._count, spec, label)


def _js() -> str:
    try:
        from plotly.offline import get_plotlyjs  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise InputError(
            "a report is drawn by plotly; install shardproof[report]"
        ) from None
    return str(get_plotlyjs())


def _front(
    number: _Figures, saved: Saved, front: Mapping[str, Any] | None, answer: Answer
) -> list[str]:
    limit = answer.problem.cluster.device.hbm_bytes
    if front is None:
        points = sorted(
            saved.document["answers"], key=lambda a: a["memory"]["peak_bytes"]
        )
        label = "Peak memory against throughput of the listed configurations"
        note = (
            "Only the listed rows: `shardproof pareto --json` writes the whole front."
        )
    else:
        points = front["points"]
        label = "Front of peak memory against throughput"
        note = (
            f"No configuration of {front['feasible_count']:,} beats one of these in "
            "both. Diamonds are the ends, the star is the knee: beyond it memory buys "
            "least."
        )
    bars = "Bars are the band of the step time, the dashed line is what fits."
    return [
        html.heading(label),
        number(figures.front(points, limit), label),
        html.paragraph(f"{note} {bars}", note=True),
    ]


def _memory(number: _Figures, answer: Answer) -> list[str]:
    best = answer.answers[0]
    pp = best.layout.pp
    shown = sorted({round(i * (pp - 1) / (MOST_RANKS - 1)) for i in range(MOST_RANKS)})
    numbers = list(range(pp)) if pp <= MOST_RANKS else shown
    fullest = best.memory.per_rank.index(max(best.memory.per_rank))
    numbers = sorted({*numbers, fullest})
    label = "Memory at the peak of each pipeline rank, first row"
    spare = answer.problem.cluster.device.hbm_bytes - best.memory.peak_bytes
    return [
        html.heading(label),
        number(
            figures.memory(groups(answer.problem, best.layout, numbers), numbers), label
        ),
        html.paragraph(
            f"Rank {fullest} is the fullest: {gib(best.memory.peak_bytes)}, "
            f"{spare / GIB:,.2f} GiB are free."
            + (
                ""
                if len(numbers) == pp
                else f" {len(numbers)} of {pp} ranks are drawn."
            ),
            note=True,
        ),
    ]


def _time(number: _Figures, answer: Answer) -> list[str]:
    from ..trace import step_timeline

    best = answer.answers[0]
    spec, whole = figures.pipeline(step_timeline(answer.problem, best.layout))
    drawn = "" if whole else f"The first {figures.MOST_SLOTS:,} slots are drawn. "
    labels = "Where the step time goes, first row", "The simulated pipeline, first row"
    return [
        html.heading(labels[0]),
        number(figures.breakdown(best.projection.breakdown), labels[0]),
        html.heading(labels[1]),
        number(spec, labels[1]),
        html.paragraph(
            f"{drawn}`shardproof report ANSWER.json --trace trace.json` writes every "
            "slot for Perfetto.",
            note=True,
        ),
    ]
