"""``shardproof pareto``: every configuration that no other one beats."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...models.layout import axis_label
from ...models.units import GIB
from ..document import Document, certificate, choice, problem
from ..progress import Progress
from ..quantity import positive
from ..table import Column, Table
from ..words import LEFT, SHOWN, question, seconds
from .report import INFEASIBLE, OK, finish, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...models.problem import Problem
    from ...solver.pareto import Front, FrontPoint
    from ..request import Request

FRONT = "shardproof/front@1"


def run(
    request: Request,
    *,
    objectives: Sequence[str],
    sizes: bool,
    price: float | None,
    as_json: bool,
    out: str | None,
) -> int:
    """Find the front, print it, and return the exit code: 1 if nothing fits."""
    from ...solver.pareto import front_over_sizes

    asked, space = priced(request.problem(), price), request.in_space()
    folder = prepare(out)
    with Progress() as progress:
        found = front_over_sizes(
            every_size(asked) if sizes else [asked], space, objectives, progress
        )
    finish(
        document(found),
        title=question(asked),
        tables=[table(found)] if found.points else (),
        text=text(found),
        as_json=as_json,
        folder=folder,
        name="front",
    )
    return OK if found.points else INFEASIBLE


def priced(problem: Problem, price: float | None) -> Problem:
    """Give the cluster's device a price.

    Raises
    ------
    InputError
        If it is not positive, or no price at all.
    """
    if price is None:
        return problem
    price = positive("--price", price)
    device = replace(problem.cluster.device, price_per_hour=price)
    return replace(problem, cluster=replace(problem.cluster, device=device))


def every_size(problem: Problem) -> list[Problem]:
    """Return the problem on 1, 2, ... all of its nodes."""
    return [
        replace(problem, cluster=replace(problem.cluster, nodes=n))
        for n in range(1, problem.cluster.nodes + 1)
    ]


def table(front: Front) -> Table:
    """Return one row for each point, in the order of the first objective."""
    objectives = [
        Column(f"{name} GiB" if name == "memory" else name) for name in front.objectives
    ]
    axes = [Column(n, "left" if n in LEFT else "right") for n in SHOWN]
    return Table(
        (Column("role", "left"), *objectives, *axes),
        tuple(_row(front, point) for point in front.points),
    )


def _row(front: Front, point: FrontPoint) -> tuple[str, ...]:
    axes = point.choice.layout.point()
    return (
        point.role,
        *(figure(name, point.values[name]) for name in front.objectives),
        *(axis_label(n, axes[n]) for n in SHOWN),
    )


def figure(name: str, value: float) -> str:
    """Write the value of an objective for a person."""
    if name == "memory":
        return f"{value / GIB:.2f}"
    if name == "step-time":
        return seconds(value)
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def text(front: Front) -> str:
    """Say what was proven about the front."""
    if not front.points:
        return "infeasible: `shardproof plan` says why"
    space = front.points[0].certificate.space
    return (
        f"complete: {front.feasible_count:,} configurations fit in {space}, and none "
        "of them beats a listed one in every objective; of equals one is listed. The "
        f"step times of {front.simulated:,} were simulated, the lower bounds of the "
        "others leave them behind."
    )


def document(front: Front) -> Document:
    """Return what ``shardproof pareto --json`` prints."""
    return {
        "schema": FRONT,
        "problem": problem(front.problem),
        "objectives": list(front.objectives),
        "feasible_count": front.feasible_count,
        "simulated": front.simulated,
        "points": [_point(point) for point in front.points],
    }


def _point(point: FrontPoint) -> Document:
    return {
        "nodes": point.problem.cluster.nodes,
        "devices": point.problem.cluster.world_size,
        "role": point.role,
        "values": dict(point.values),
        **choice(point.choice),
        "certificate": certificate(point.certificate),
    }
