"""``shardproof book``: the best configuration for every number of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.errors import InputError
from ...models.layout import axis_label
from ...models.units import GIB
from ..document import Document, certificate, choice, problem
from ..progress import Progress
from ..quantity import values_of
from ..table import Column, Table
from ..words import LEFT, SHOWN, question, seconds
from .report import INFEASIBLE, OK, finish, prepare

if TYPE_CHECKING:
    from ...solver.pareto.book import Page
    from ..request import Request

BOOK = "shardproof/book@1"


def run(
    request: Request, *, nodes: str, tolerance: float, as_json: bool, out: str | None
) -> int:
    """Plan every node count, print, and return the exit code: 1 if none fits."""
    from ...solver.pareto.book import book

    if not 0 <= tolerance <= 0.5:
        raise InputError(
            f"--batch-tolerance is a fraction in 0..0.5, got {tolerance:g}"
        )
    asked, space = request.problem(), request.in_space()
    counts = node_counts(nodes, asked.cluster.nodes)
    folder = prepare(out)
    with Progress() as progress:
        pages = list(book(asked, space, counts, tolerance, progress))
    finish(
        {
            "schema": BOOK,
            "problem": problem(asked),
            "batch_tolerance": tolerance,
            "pages": [_document(page) for page in pages],
        },
        title=question(asked),
        tables=[table(pages)],
        text="Each row is the fastest of a complete set; scaling is tokens/s/GPU "
        "against the smallest cluster that fits.",
        as_json=as_json,
        folder=folder,
        name="book",
    )
    return OK if any(page.answer for page in pages) else INFEASIBLE


def node_counts(text: str, nodes: int) -> list[int]:
    """Read node counts: ``all``, ``1..16`` or a list.

    Raises
    ------
    InputError
        If they are none of these.
    """
    if text == "all":
        return list(range(1, nodes + 1))
    counts = [int(v) for v in values_of("--nodes", "whole", text)]
    if not all(1 <= n <= 2**20 for n in counts):
        raise InputError(f"--nodes are whole numbers of at least 1, got {text[:60]!r}")
    return counts


def table(pages: list[Page]) -> Table:
    """Return one row for each node count."""
    first = next((p for p in pages if p.answer), None)
    columns = (
        *(Column(n) for n in ("nodes", "GPUs", "batch", "tokens/s", "scaling")),
        *(Column(n) for n in ("step time", "peak GiB")),
        *(Column(n, "left" if n in LEFT else "right") for n in SHOWN),
    )
    return Table(columns, tuple(_row(page, first) for page in pages))


def _row(page: Page, first: Page | None) -> tuple[str, ...]:
    cluster, batch = page.problem.cluster, page.problem.training.global_batch
    head = (f"{cluster.nodes:,}", f"{cluster.world_size:,}", f"{batch:,}")
    if page.answer is None or first is None:
        return (*head, "nothing fits", *[""] * (len(SHOWN) + 3))
    best = page.answer.answers[0]
    each = [p.tokens_per_s / p.problem.cluster.world_size for p in (page, first)]
    axes = best.layout.point()
    return (
        *head,
        f"{page.tokens_per_s:,.0f}",
        f"{each[0] / each[1]:.1%}",
        seconds(best.projection.step_time_s),
        f"{best.memory.peak_bytes / GIB:.2f}",
        *(axis_label(n, axes[n]) for n in SHOWN),
    )


def _document(page: Page) -> Document:
    found = page.answer
    return {
        "nodes": page.problem.cluster.nodes,
        "devices": page.problem.cluster.world_size,
        "global_batch": page.problem.training.global_batch,
        "tokens_per_s": page.tokens_per_s,
        "best": choice(found.answers[0]) if found else None,
        "certificate": certificate(found.certificate) if found else None,
    }
