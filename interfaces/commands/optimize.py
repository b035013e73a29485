"""``shardproof plan`` with a goal: any objective within limits, stages included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...models.layout import axis_label
from ...models.units import GIB
from ..document import choice as choice_document
from ..document import problem as problem_document
from ..progress import Progress
from ..quantity import positive
from ..request import rows
from ..table import Column, Table
from ..words import layout as layout_words
from ..words import question, seconds, spread
from .report import INFEASIBLE, OK, finish, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...solver.optimum import Found, Goal, Optimum, Rival
    from ...solver.stages import Stages
    from ..document import Document
    from ..request import Request

OPTIMUM = "shardproof/optimum@1"
_AXES = ("tp", "pp", "vpp", "cp", "ep", "etp", "dp", "mbs", "schedule", "sharding")


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The options of a goal as a user types them; nothing is asked for by default.

    Attributes
    ----------
    objective
        What to optimise.
    where
        Limits, as text.
    stages
        Whether to choose explicit stages.
    batch_tolerance
        How far the global batch may be from the given one, as a share of it.
    train_tokens, price, watts
        Tokens of the whole training; price of a device an hour; its power.
    seconds
        CPU time for choosing stages.
    """

    objective: str | None = None
    where: Sequence[str] = ()
    stages: bool = False
    batch_tolerance: float = 0.0
    train_tokens: float | None = None
    price: float | None = None
    watts: float | None = None
    seconds: float = 45.0

    @property
    def asked(self) -> bool:
        """Whether anything but the plain plan is asked for."""
        changed = self.objective or self.where or self.stages or self.batch_tolerance
        return bool(changed)

    def goal(self) -> Goal:
        """Check the options and build the goal."""
        from ...solver.optimum import Goal, Prices, limit

        prices = Prices(
            per_hour=positive("--price", self.price),
            watts=positive("--watts", self.watts),
            train_tokens=positive("--train-tokens", self.train_tokens, below=1e18),
        )
        positive("--seconds", self.seconds, nought=True)
        limits = tuple(limit(text) for text in self.where)
        for one in limits:
            positive(f"--where {one.name}", one.value, below=1e18, nought=True)
        return Goal(objective=self.objective or "tokens", prices=prices, limits=limits)


def run(
    request: Request, wish: Wish, *, top: int, as_json: bool, out: str | None
) -> int:
    """Answer, print, and return the exit code."""
    from ...solver.optimum import optimum

    number, goal = rows(top, least=1), wish.goal()
    problem, space = request.problem(), request.in_space()
    folder = prepare(out)
    with Progress() as progress:
        found = optimum(
            problem,
            space,
            goal=goal,
            batch_tolerance=wish.batch_tolerance,
            top=number,
            stages=wish.stages,
            seconds=wish.seconds,
            progress=progress,
        )
    finish(
        document(found),
        title=question(problem),
        tables=[_table(found)] if found.answers else [],
        text=words(found),
        as_json=as_json,
        folder=folder,
    )
    return OK if found.answers else INFEASIBLE


def document(value: Optimum) -> Document:
    """Return the optimum as plain data, the form of ``optimum-v1.json``."""
    proof = value.proof
    return {
        "schema": OPTIMUM,
        "problem": problem_document(value.problem),
        "goal": {
            "objective": value.goal.objective,
            "limits": [limit.text for limit in value.goal.limits],
        },
        "answers": [_found(f) for f in value.answers],
        "rivals": [
            {"answer": _found(r.found), "part": r.part, "difference_s": r.difference}
            for r in value.rivals
        ],
        "not_distinguishable": value.close,
        "proof": {
            "status": proof.status,
            "space": value.space,
            "space_hash": value.space_hash,
            "dialect": value.problem.dialect,
            "profile": value.profile,
            "calibrated": value.calibrated,
            "bound": proof.bound,
            "gap": proof.gap,
            "scored": proof.scored,
            "feasible_count": proof.feasible,
            "legal_count": proof.legal,
            "skeletons": proof.skeletons,
            "stage_bound": proof.stage_bound,
            "stage_gap": proof.stage_gap,
        },
    }


def _found(value: Found) -> Document:
    shown: Document = {
        "value": value.value,
        "devices": value.problem.cluster.world_size,
        "global_batch": value.problem.training.global_batch,
    }
    if value.choice is not None:
        return shown | choice_document(value.choice)
    assert value.stages is not None
    return shown | _stages(value.stages)


def _stages(value: Stages) -> Document:
    projection = value.projection
    return {
        "layout": value.layout.labels(),
        "memory": {
            "peak_bytes": max(value.per_rank),
            "per_rank": list(value.per_rank),
        },
        "projection": {
            "step_time_s": projection.step_time_s,
            "tokens_per_s_per_gpu": projection.tokens_per_s_per_gpu,
            "mfu": projection.mfu,
            "bubble_fraction": projection.bubble_fraction,
            "band": list(projection.band),
            "breakdown": dict(projection.breakdown),
        },
        "stages": {
            "pipeline_layout": value.pipeline_layout,
            "recompute": list(value.recompute),
            "bound_s": value.bound,
            "gap": value.gap,
        },
    }


def _table(value: Optimum) -> Table:
    names = (
        Column("GPUs"),
        Column("batch"),
        *(Column(n) for n in _AXES),
        Column("stages and recompute", "left"),
        Column("peak GiB"),
        Column("step time"),
        Column(value.goal.objective),
    )
    return Table(names, tuple(_row(f) for f in value.answers))


def _row(found: Found) -> tuple[str, ...]:
    one = found.choice or found.stages
    assert one is not None
    point = one.layout.point()
    if found.stages is not None:
        peak, how = max(found.stages.per_rank), found.stages.pipeline_layout
    else:
        assert found.choice is not None
        peak = found.choice.memory.peak_bytes
        how = f"{axis_label('split', point['split'])}, " + axis_label(
            "recompute", point["recompute"]
        )
    projection = one.projection
    return (
        f"{found.problem.cluster.world_size:,}",
        f"{found.problem.training.global_batch:,}",
        *(axis_label(n, point[n]) for n in _AXES),
        how,
        f"{peak / GIB:.2f}",
        f"{seconds(projection.step_time_s)} "
        f"{spread(projection.step_time_s, projection.band)}",
        f"{found.value:,.5g}",
    )


def words(value: Optimum) -> str:
    """Write what was proven, what was recomputed where, and what is too close."""
    from ...solver.optimum import OBJECTIVES

    proof = value.proof
    if not value.answers:
        return (
            f"infeasible: none of the {proof.legal:,} configurations of space "
            f"{value.space} that {value.problem.dialect} accepts keeps the limits."
        )
    unit = OBJECTIVES[value.goal.objective]
    first = (
        f"{proof.status}: {proof.feasible:,} of {proof.legal:,} configurations of "
        f"space {value.space} fit; none is better than {proof.bound:,.5g} {unit} "
        f"(gap {proof.gap:.2%}; {proof.scored:,} simulated)."
    )
    lines = [first, *_of_stages(value)]
    lines.append(
        f"Not distinguishable from the first row within the profile's band: up to "
        f"{value.close:,} configurations."
    )
    lines += [_rival(r) for r in value.rivals]
    return "\n".join(lines)


def _of_stages(value: Optimum) -> list[str]:
    proof, best = value.proof, value.answers[0].stages
    lines = []
    if proof.stage_gap is not None and proof.stage_bound is not None:
        lines.append(
            f"Stages were chosen in {proof.skeletons} skeletons; no stages of any "
            f"skeleton are better than {proof.stage_bound:,.5g} (gap "
            f"{proof.stage_gap:.2%})."
        )
    if best is not None:
        lines.append(f"First row: gap to its skeleton's bound {best.gap:.2%}.")
        lines.append(f"Recomputed by layer: {runs(best.recompute)}.")
    return lines


def runs(levels: Sequence[str]) -> str:
    """Write levels of layers as ranges, the layers that recompute nothing left out."""
    parts, start = [], 0
    for i in range(1, len(levels) + 1):
        if i == len(levels) or levels[i] != levels[start]:
            if levels[start] != "none":
                where = f"{start}" if i - start == 1 else f"{start}-{i - 1}"
                parts.append(f"{where} {levels[start]}")
            start = i
    return ", ".join(parts) or "nothing"


def _rival(rival: Rival) -> str:
    one = rival.found.choice or rival.found.stages
    assert one is not None
    sign = "longer" if rival.difference > 0 else "shorter"
    return (
        f"  {layout_words(one.layout)}: {seconds(abs(rival.difference))} {sign} in "
        f"{rival.part}; a measurement of {rival.part} would tell them apart."
    )
