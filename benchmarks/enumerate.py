"""What complete enumeration costs: counts, CPU seconds and memory of every bar."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from time import process_time
from typing import TYPE_CHECKING, Any

from ..models.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..models.problem import Problem
    from ..solver.space import Space

#: The standard workloads, each a space of the solver.
SPACES = (
    "llama-3.1-8b-8xh100",
    "mixtral-8x22b-32xmi300x",
    "llama-3.1-405b-1024xh100",
    "llama-3.1-405b-16384xh100",
    "deepseek-v3-2048xh800",
)
_MOST_SECONDS, _MOST_BYTES = 60.0, 4 * 2**30
_SOLVER_SECONDS, _SOLVER_ROWS = 40.0, 100_000
#: What the case of CP-SAT leaves of the first space, in the user's words.
_CUT = {
    "mbs": ("1", "2"),
    "vpp": ("1", "2", "4"),
    "gbs": ("128",),
    "precision": ("bf16", "fp8-delayed", "fp8-tensor"),
    "cross_entropy": ("native-fused", "te-fused"),
    "offload": ("none", "optimizer", "activations"),
    "instances": ("1",),
    "cp_style": ("p2p",),
    "recompute": ("none", "core_attn", "mlp", "full", "full-uniform-2", "full-block-2"),
    "sharding": ("none", "zero-1", "megatron-fsdp"),
}


def asked(name: str) -> tuple[Problem, Space]:
    """Return the problem and the space of a workload.

    Raises
    ------
    InputError
        If the space has no workload.
    """
    from ..models.catalogue import cluster, model
    from ..models.problem import Problem, Training
    from ..solver.space import load_space

    space = load_space(name)
    work: dict[str, Any] = dict(space.workload)
    if not work:
        raise InputError(f"space {name} has no workload to enumerate")
    problem = Problem(
        architecture=model(work["model"]),
        cluster=cluster(work["cluster"]),
        training=Training(seq_len=work["seq_len"], global_batch=work["global_batch"]),
    )
    return problem, space


def measure(name: str, rules_only: bool) -> dict[str, Any]:
    """Count one space, and return the count, CPU seconds and peak bytes."""
    from ..solver.feasible import enumerate_feasible

    begun = process_time()
    found = enumerate_feasible(*asked(name), rules_only=rules_only)
    return {
        "space": name,
        "rules_only": rules_only,
        "count": found.count,
        "skeletons": len(found.bits),
        "cells": found.choices,
        "cpu_s": process_time() - begun,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def solver_case() -> dict[str, Any]:
    """Enumerate 100,000 configurations that fit by CP-SAT and by arrays."""
    from ..models.layout import axis_code
    from ..solver.feasible import enumerate_feasible

    problem, space = asked(SPACES[0])
    for name, words in _CUT.items():
        space = space.restrict(name, tuple(axis_code(name, w) for w in words))
    begun = process_time()
    solved = enumerate_feasible(problem, space, engine="cpsat")
    spent = process_time() - begun
    arrays = enumerate_feasible(problem, space)
    return {
        "space": f"{SPACES[0]}, cut",
        "count": solved.count,
        "equal": solved.content_hash == arrays.content_hash,
        "cpu_s": spent,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _apart(words: Sequence[str]) -> dict[str, Any]:
    """Measure in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, "-m", "shardproof.benchmarks.enumerate", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no reason"]
        raise InputError(f"the measurement of {' '.join(words)} failed: {reason[0]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _lines(spaces: Sequence[str], solver: bool) -> Iterator[tuple[str, bool]]:
    for name in spaces:
        for rules in (True, False):
            got = _apart(["--one", name, *(["--rules-only"] if rules else [])])
            held = got["cpu_s"] <= _MOST_SECONDS and got["peak_bytes"] <= _MOST_BYTES
            what = "legal" if rules else "fit"
            yield (
                f"{name:<27}{got['count']:>15,} {what:<6}{got['cpu_s']:>7.1f} s"
                f"{got['peak_bytes'] / 2**30:>7.2f} GiB",
                held,
            )
    if solver:
        got = _apart(["--solver"])
        each = got["cpu_s"] / max(got["count"], 1)
        enough = got["count"] >= _SOLVER_ROWS
        held = enough and each * _SOLVER_ROWS <= _SOLVER_SECONDS
        same = "the same set" if got["equal"] else "ANOTHER SET"
        yield (
            f"{'CP-SAT':<27}{got['count']:>15,} fit   {got['cpu_s']:>7.1f} s, {same} "
            "as by arrays",
            held and bool(got["equal"]),
        )


def main(words: Sequence[str] = ()) -> int:
    """Print every bar, and return 1 if one is missed."""
    parser = argparse.ArgumentParser("shardproof bench enumerate", description=__doc__)
    parser.add_argument("--space", action="append", choices=SPACES)
    parser.add_argument("--no-solver", action="store_true", help="leave CP-SAT out")
    parser.add_argument("--one", choices=SPACES, help=argparse.SUPPRESS)
    parser.add_argument("--rules-only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--solver", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(list(words))
    if given.one or given.solver:
        one = solver_case() if given.solver else measure(given.one, given.rules_only)
        print(json.dumps(one))
        return 0
    missed = 0
    for line, held in _lines(given.space or SPACES, not given.no_solver):
        print(f"{line}  {'ok' if held else 'MISSED'}", flush=True)
        missed += not held
    print(
        f"bars: {_MOST_SECONDS:.0f} s of CPU, 4 GiB; CP-SAT "
        f"{_SOLVER_SECONDS:.0f} s for each {_SOLVER_ROWS:,}"
    )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
