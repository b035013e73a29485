"""Every minimal conflict and correction: how many points are looked at, how fast.

Requests that cannot be met, each with its raw points, the sets of constraints that
they break, and CPU seconds; with ``--check`` every statement is re-solved too.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..models.catalogue import cluster, model
from ..models.layout import axis_code
from ..models.problem import Problem, Training
from ..solver.domains import bind
from ..solver.explain import explain_request, lift
from ..solver.explain.resolve import check
from ..solver.explain.search import corrections
from ..solver.space import load_space

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: CPU seconds for so many raw points.
BAR_SECONDS, BAR_POINTS = 2.0, 200_000


@dataclass(frozen=True, kw_only=True)
class Case:
    """A request that cannot be met; ``pins`` in the user's words."""

    model: str
    cluster: str
    seq_len: int
    global_batch: int
    pins: Mapping[str, str]


CASES = (
    Case(
        model="llama-3.1-405b",
        cluster="1x8:h100",
        seq_len=8192,
        global_batch=64,
        pins={},
    ),
    Case(
        model="mixtral-8x7b",
        cluster="1x8:h100",
        seq_len=4096,
        global_batch=64,
        pins={"recompute": "none"},
    ),
    Case(
        model="llama-3.1-405b",
        cluster="128x8:h100",
        seq_len=8192,
        global_batch=2048,
        pins={"tp": "8", "pp": "4", "vpp": "1", "split": "even", "recompute": "none"},
    ),
)


def measure(case: Case, *, checked: bool = False) -> dict[str, Any]:
    """Explain one request and return the figures, times in CPU seconds."""
    asked = Problem(
        architecture=model(case.model),
        cluster=cluster(case.cluster),
        training=Training(seq_len=case.seq_len, global_batch=case.global_batch),
        pins={name: (axis_code(name, text),) for name, text in case.pins.items()},
    )
    request = lift(bind(asked, load_space()))
    begun = time.process_time()
    value = explain_request(request)
    seconds = time.process_time() - begun
    _, points = corrections(request)
    found = {
        "request": f"{case.model} on {case.cluster}, {len(case.pins)} pins",
        "points": points,
        "conflicts": len(value.conflicts),
        "corrections": len(value.corrections),
        "missing_bytes": value.missing_bytes,
        "cpu_s": seconds,
        "cpu_s_of_200k_points": seconds * BAR_POINTS / points,
    }
    if checked:
        solved = check(request, value)
        found |= {"re_solved": solved.solved, "wrong": list(solved.wrong)}
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures of every request; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="shardproof bench explain", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="re-solve all statements")
    parser.add_argument(
        "--gate", action="store_true", help="exit 1 beyond the bar or if one is wrong"
    )
    asked = parser.parse_args(argv)
    rows = [measure(case, checked=asked.check) for case in CASES]
    if asked.json:
        print(json.dumps({"bar_s": BAR_SECONDS, "rows": rows}))
    else:
        _print(rows)
    slow = any(row["cpu_s_of_200k_points"] > BAR_SECONDS for row in rows)
    wrong = any(row.get("wrong") for row in rows)
    return 1 if asked.gate and (slow or wrong) else 0


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        print(
            f"{row['request']}: {row['points']:,} raw points, {row['conflicts']} "
            f"conflicts, {row['corrections']} corrections, {row['cpu_s']:.2f} CPU s "
            f"({row['cpu_s_of_200k_points']:.2f} for {BAR_POINTS:,}; bar "
            f"{BAR_SECONDS:.0f})"
        )
        if "re_solved" in row:
            print(f"  {row['re_solved']} re-solved, {len(row['wrong'])} wrong")


if __name__ == "__main__":
    raise SystemExit(main())
