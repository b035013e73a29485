"""DeepSpeed and Accelerate are asked again, about cases that no file holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from other_cases import other_cases

from shardproof.benchmarks.verdict_others import READERS, broken

pytestmark = pytest.mark.slow
_TESTS = Path(__file__).parents[2]
_PYTHON = os.environ.get("SHARDPROOF_DEEPSPEED_PYTHON", sys.executable)


@pytest.mark.parametrize("dialect", sorted(READERS))
def test_fresh_cases_agree(dialect: str, tmp_path: Path) -> None:
    known = subprocess.run(
        [_PYTHON, "-c", f"import torch, transformers, {dialect}"],
        capture_output=True,
        check=False,
    )
    if known.returncode:
        pytest.skip(
            f"no {dialect} here: it is NOT asked, only its recorded verdicts are; name "
            "a Python that has it in SHARDPROOF_DEEPSPEED_PYTHON (torch==2.13.0, "
            "deepspeed==0.19.8, accelerate==1.15.0, transformers==5.24.0)"
        )
    cases = list(other_cases(dialect, 1, 2, 100))
    asked, said = tmp_path / "cases.json", tmp_path / "said.json"
    asked.write_text(json.dumps(cases), encoding="utf-8")
    words = ["-m", f"oracles.verdict.{dialect}.ask_{dialect}", str(asked), str(said)]
    subprocess.run(
        [_PYTHON, *words], env=dict(os.environ, PYTHONPATH=str(_TESTS)), check=True
    )
    answers = json.loads(said.read_text(encoding="utf-8"))
    for case, answer in zip(cases, answers, strict=True):
        ids = [rule.id for rule in broken(dialect, case)]
        assert bool(ids) == (answer is not None), (case, ids, answer)
