"""``shardproof whatif``: plans for machines that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.errors import InputError
from ...models.units import GIB
from ..document import Document, choice, problem
from ..progress import Progress
from ..quantity import positive, values_of
from ..request import assignment
from ..table import Column, Table
from ..words import question, seconds
from .pareto import priced
from .report import INFEASIBLE, OK, finish, prepare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...solver.whatif import Case
    from ..request import Request

WHATIF = "shardproof/whatif@1"
_AXES = ("tp", "pp", "vpp", "cp", "ep", "dp", "mbs", "recompute", "sharding")


def run(
    request: Request,
    *,
    vary: Sequence[str],
    target: float | None,
    price: float | None,
    as_json: bool,
    out: str | None,
) -> int:
    """Plan every machine, print, and return the exit code: 1 if none fits."""
    from ...solver.whatif import cases, cheapest, elasticities

    positive("--target", target, below=1e15)
    asked, space = priced(request.problem(), price), request.in_space()
    varied, folder = read(vary), prepare(out)
    with Progress() as progress:
        found = cases(asked, space, varied, progress)
        worth = elasticities(asked, space, progress)
    best = cheapest(found, target) if target is not None else None
    finish(
        {
            "schema": WHATIF,
            "problem": problem(asked),
            "cases": [_document(case) for case in found],
            "elasticities": worth,
            "target_tokens_per_s": target,
            "cheapest": found.index(best) if best else None,
        },
        title=question(asked),
        tables=[table(found)],
        text="\n".join((_binds(worth), *_reached(target, best))),
        as_json=as_json,
        folder=folder,
        name="whatif",
    )
    return OK if any(case.answer for case in found) else INFEASIBLE


def read(vary: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Read ``--vary NAME=VALUES`` options.

    Raises
    ------
    InputError
        If a quantity is unknown or given twice, or its values are not readable.
    """
    from ...models.errors import unknown_name
    from ...solver.whatif import QUANTITIES

    varied: dict[str, tuple[float, ...]] = {}
    for text in vary:
        name, values = assignment("--vary", text)
        if name not in QUANTITIES:
            raise unknown_name("quantity", name, QUANTITIES)
        if name in varied:
            raise InputError(f"--vary takes each quantity once, got {name} twice")
        varied[name] = values_of(name, QUANTITIES[name], values)
    if not varied:
        raise InputError(
            "whatif needs a quantity, for example --vary device.hbm_bytes=80GiB..288GiB"
        )
    return varied


def table(found: Sequence[Case]) -> Table:
    """Return one row for each machine."""
    names = list(found[0].values)
    figures = ("fit", "tokens/s", "tokens/s/GPU", "step time", "peak GiB", *_AXES)
    columns = (*map(Column, names), *map(Column, figures))
    return Table(columns, tuple(_row(case) for case in found))


def _row(case: Case) -> tuple[str, ...]:
    head = [shown(name, value) for name, value in case.values.items()]
    if case.answer is None:
        return (*head, "0", "nothing fits", *[""] * (3 + len(_AXES)))
    best = case.answer.answers[0]
    labels = best.layout.labels()
    return (
        *head,
        f"{case.answer.certificate.feasible_count:,}",
        f"{case.tokens_per_s:,.0f}",
        f"{best.projection.tokens_per_s_per_gpu:,.0f}",
        seconds(best.projection.step_time_s),
        f"{best.memory.peak_bytes / GIB:.2f}",
        *(str(labels[name]) for name in _AXES),
    )


def shown(name: str, value: float) -> str:
    """Write a varied quantity for a person."""
    from ...solver.whatif import QUANTITIES

    match QUANTITIES[name]:
        case "bytes":
            return f"{value / GIB:.1f} GiB"
        case "bytes/s":
            return f"{value / 1e9:,.0f} GB/s"
        case "FLOP/s":
            return f"{value / 1e12:,.0f} TFLOP/s"
        case "s":
            return f"{value * 1e6:g} us"
        case _:
            return f"{value:g}"


def _binds(worth: Mapping[str, float]) -> str:
    ordered = sorted(worth.items(), key=lambda kv: -kv[1])
    listed = ", ".join(f"{name} {value:+.2f} %" for name, value in ordered)
    what = ordered[0][0] if ordered[0][1] > 0.005 else "none of them"
    return f"1 % more of a resource gives: {listed}. What binds is {what}."


def _reached(target: float | None, best: Case | None) -> list[str]:
    if target is None:
        return []
    if best is None:
        return [f"No machine reaches {target:,.0f} tokens/s."]
    values = ", ".join(f"{n} = {shown(n, v)}" for n, v in best.values.items())
    return [
        f"The cheapest machine that reaches {target:,.0f} tokens/s: {values} with "
        f"{best.tokens_per_s:,.0f} tokens/s."
    ]


def _document(case: Case) -> Document:
    found = case.answer
    return {
        "values": dict(case.values),
        "tokens_per_s": case.tokens_per_s,
        "feasible_count": found.certificate.feasible_count if found else 0,
        "best": choice(found.answers[0]) if found else None,
    }
