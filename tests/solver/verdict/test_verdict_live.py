"""megatron-core is asked again, about cases that no file holds."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from verdict_cases import drawn_cases, family_cases
from verdict_crossed import crossed_cases

from shardproof.benchmarks.verdict import Judged, judge_all
from shardproof.benchmarks.verdict_live import ask_again
from shardproof.benchmarks.verdict_records import Recorded, read_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

pytestmark = pytest.mark.slow
_TESTS = Path(__file__).parents[2]
_STEPS = (
    "bias-alone",
    "instances-sharding",
    "recompute-bias",
    "recompute-mtp",
    "recompute-uniform",
)


@pytest.fixture(autouse=True)
def _needs_megatron() -> None:
    for name in ("torch", "megatron", "einops"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(
                f"no {name} here: megatron-core is NOT asked, only its recorded "
                "verdicts are; pip install 'shardproof[oracle]' to ask it"
            )


def _fresh(cases: Iterable[dict[str, Any]]) -> Iterator[Recorded]:
    for case in cases:
        yield Recorded(kind=case["kind"], case=case, stage="", legal=True)


def _agree(found: Iterable[Recorded]) -> list[Judged]:
    asked, _ = ask_again(list(found), sys.executable)
    judged = judge_all(asked)
    wrong = [j for j in judged if not j.agrees]
    assert not wrong, [(j.recorded, [r.id for r in j.broken]) for j in wrong[:5]]
    return judged


def test_fresh_families_agree() -> None:
    judged = _agree(_fresh(family_cases(seed=1, number=2)))
    assert len(judged) > 500


def test_fresh_draws_agree() -> None:
    judged = _agree(_fresh(drawn_cases(seed=1, number=400)))
    assert 100 < sum(j.recorded.legal for j in judged) < 300


def test_crossed_verdicts_agree() -> None:
    """Parts of one case in another, both from verdicts of another hand."""
    judged = _agree(_fresh(crossed_cases(seed=1, number=400)))
    assert 100 < sum(j.recorded.legal for j in judged) < 300


def test_records_are_said_again() -> None:
    before = read_records()[::97]
    after, _ = ask_again(before, sys.executable)
    assert [(r.stage, r.legal) for r in after] == [(r.stage, r.legal) for r in before]


def test_fresh_steps_agree(tmp_path: Path) -> None:
    cases = [
        case
        for case in family_cases(seed=2, number=3)
        if case["kind"].removesuffix(" ok") in _STEPS
    ]
    asked, said = tmp_path / "cases.json", tmp_path / "said.jsonl"
    asked.write_text(json.dumps(cases), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "oracles.verdict", str(asked), str(said), "--step"],
        env={"PYTHONPATH": str(_TESTS), "PATH": "/usr/bin:/bin"},
        check=True,
    )
    steps = {v["id"]: v for v in map(json.loads, said.read_text("utf-8").splitlines())}
    for case in cases:
        assert (steps[case["id"]]["step"] is None) == case["kind"].endswith(" ok"), case
