"""Answers in words: the rows of the table, the certificate, the explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..models.layout import axis_label
from ..models.units import GIB, gib
from .table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..models.layout import Layout
    from ..models.problem import Problem
    from ..solver.answer import Answer, Certificate, Choice, Correction, Infeasible

#: Axes in the order in which a row shows them.
SHOWN = (
    "tp",
    "pp",
    "vpp",
    "cp",
    "ep",
    "etp",
    "dp",
    "mbs",
    "sp",
    "schedule",
    "recompute",
    "sharding",
    "split",
)
#: Axes whose values are words.
LEFT = ("sp", "schedule", "recompute", "sharding", "split")
_STATUS = {
    "complete": "complete",
    "optimal": "optimal",
    "bounded": "best found, not proven optimal",
}


def choices(answers: Sequence[Choice], problem: Problem) -> Table:
    """Return one row for each configuration, fastest first as given."""
    limit = problem.cluster.device.hbm_bytes
    axes = tuple(Column(n, "left" if n in LEFT else "right") for n in SHOWN)
    figures = (
        Column(f"peak GiB of {limit / GIB:.2f}"),
        Column("step time"),
        Column("tokens/s/GPU"),
        Column("MFU"),
        Column("bubble"),
    )
    return Table((*axes, *figures), tuple(_row(c) for c in answers))


def _row(choice: Choice) -> tuple[str, ...]:
    point, found = choice.layout.point(), choice.projection
    return (
        *(axis_label(n, point[n]) for n in SHOWN),
        f"{choice.memory.peak_bytes / GIB:.2f}",
        f"{seconds(found.step_time_s)} {spread(found.step_time_s, found.band)}",
        _rate(found.tokens_per_s_per_gpu),
        f"{found.mfu:.1%}",
        f"{found.bubble_fraction:.1%}",
    )


def seconds(time: float) -> str:
    """Write a time with three digits, in s, ms or us."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        value = time * factor
        if value >= 1 or unit == "us":
            break
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{digits}f} {unit}"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.3g}"


def spread(value: float, band: tuple[float, float]) -> str:
    """Write a band beside its value, as ± where it is even on both sides."""
    below, above = 1 - band[0] / value, band[1] / value - 1
    if abs(below - above) < 0.005:
        return f"±{above:.0%}"
    return f"-{below:.0%}/+{above:.0%}"


def question(problem: Problem) -> str:
    """Write one line that says what was asked."""
    training, cluster = problem.training, problem.cluster
    pins = "".join(
        f", {name}={'/'.join(axis_label(name, c) for c in codes)}"
        for name, codes in problem.pins.items()
    )
    return (
        f"{problem.architecture.name} on {cluster.nodes} x {cluster.gpus_per_node} "
        f"{cluster.device.name}, {training.global_batch:,} sequences of "
        f"{training.seq_len:,} tokens a step, {training.precision}, "
        f"{training.optimizer}, {problem.dialect}{pins}"
    )


def certificate(answer: Answer) -> str:
    """Write what was proven, in plain words, a sentence a line."""
    proof, problem = answer.certificate, answer.problem
    limit = gib(problem.cluster.device.hbm_bytes)
    return "\n".join(
        (
            f"{_STATUS[proof.status]}: {_counted(proof, limit)}",
            _optimum(proof),
            calibration(answer),
            f"Space sha256 {proof.space_hash[:12]}.",
            *_borrowed(problem.dialect),
        )
    )


def _borrowed(dialect: str) -> tuple[str, ...]:
    """Say where memory and times of one framework stand in for another's."""
    if dialect.partition("@")[0] in _MODELLED:
        return ()
    return (f"Memory and times are Megatron's; only the rules are {dialect}'s.",)


#: Dialects whose own tensors, buffers and kernels are modelled.
_MODELLED = ("megatron",)


def _counted(proof: Certificate, limit: str) -> str:
    return (
        f"all {proof.legal_count:,} configurations of space {proof.space} that "
        f"{proof.dialect} accepts were counted, {proof.feasible_count:,} of them fit "
        f"in {limit}."
    )


def _optimum(proof: Certificate) -> str:
    if proof.gap <= 0:
        return "None of them has a shorter projected step time than the first row."
    bound = seconds(proof.bound)
    return f"None of them can be faster than {bound} (gap {proof.gap:.2%})."


def calibration(answer: Answer) -> str:
    """Write how far the step times can be trusted."""
    proof, best = answer.certificate, answer.answers[0].projection
    band = spread(best.step_time_s, best.band)
    if proof.calibrated:
        return f"Profile {proof.profile} is calibrated: step times are {band}."
    return (
        f"Profile {proof.profile} is uncalibrated: step times are {band}, and the "
        "order of rows closer than that is not certain on the real machine."
    )


def explanation(value: Infeasible, nodes: int | None = None) -> str:
    """Write why nothing is feasible and what would help; ``nodes`` were enough."""
    alone = value.space.startswith("layout@")
    lines = [_head_alone(value) if alone else _head(value)]
    lines += [f"  {c.rule}: {c.sentence}" for c in value.clashes]
    if value.missing_bytes is not None:
        rank = "" if alone else " of the configuration that needs least"
        lines.append(
            f"Missing: {value.missing_bytes:,} bytes ({gib(value.missing_bytes)}) on "
            f"the fullest rank{rank}."
        )
    if nodes is not None:
        devices = nodes * value.problem.cluster.gpus_per_node
        lines.append(
            f"With {nodes:,} nodes ({devices:,} devices) some configuration fits; with "
            f"half of them none does."
        )
    ways = () if alone else value.corrections
    if ways:
        lines.append("It would be feasible with any one of these:")
        lines += [f"  {correction(c)}" for c in ways[:_MOST]]
    if len(ways) > _MOST:
        lines.append(f"  ... and {len(ways) - _MOST} more (--json)")
    return "\n".join(lines)


_MOST = 8


def _head(value: Infeasible) -> str:
    space = f"space {value.space} that {value.problem.dialect} accepts"
    several = len(value.clashes) > 1
    why = (
        "These rules exclude each other here" if several else "This rule is in the way"
    )
    if value.legal_count:
        number = f"{value.legal_count:,} configurations"
        return f"infeasible: none of the {number} of {space} fits. {why}:"
    return f"infeasible: there is no configuration of {space}. {why}:"


def _head_alone(value: Infeasible) -> str:
    if value.legal_count:
        return "infeasible: the layout is legal and does not fit:"
    return f"infeasible: {value.problem.dialect} does not accept the layout:"


def correction(value: Correction) -> str:
    """Write one way out and the layout that it makes feasible."""
    lifted = [r for r in value.rules if r not in ("memory", *_WORLD)]
    point = value.witness.point()
    parts = [
        f"with {axis}={axis_label(axis, point[axis])}"
        if kind in ("pin", "axis")
        else f"without {rule}"
        for rule in lifted
        for kind, _, axis in (rule.partition(":"),)
    ]
    if set(_WORLD) & set(value.rules):
        at = value.witness
        parts.append(f"on {at.tp * at.pp * at.cp * max(at.dp, 1):,} devices")
    if value.missing_bytes:
        parts.append(f"{gib(value.missing_bytes)} more memory on every device")
    return f"{' and '.join(parts)}: {layout(value.witness)}"


#: Lifting these means another number of devices.
_WORLD = ("world-dense", "world-expert")


def layout(value: Layout) -> str:
    """Write a layout in one line, axes of value 1 left out."""
    point = value.point()
    named = [n for n in SHOWN if n in LEFT or point[n] > 1]
    return " ".join(f"{n}={axis_label(n, point[n])}" for n in named)
