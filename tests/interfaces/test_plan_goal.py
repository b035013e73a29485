"""``shardproof plan`` with an objective, limits and stages."""

import json

import pytest

from shardproof.interfaces.cli import main
from shardproof.interfaces.commands.optimize import runs

ASK = ["plan", "llama-3.2-1b", "--cluster", "1x8:h100", "--seq-len", "4096"]
ASK += ["--global-batch", "64", "--json", "--top", "2"]


def ask(
    capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, dict[str, object]]:
    """Run the command; return its exit code and its document."""
    code = main([*ASK, *more])
    return code, json.loads(capsys.readouterr().out)


def test_a_goal_is_answered_with_its_proof(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, found = ask(
        capsys, "--objective", "cost", "--price", "2", "--where", "headroom>=8GiB"
    )
    assert code == 0
    assert found["schema"] == "shardproof/optimum@1"
    assert found["goal"] == {"objective": "cost", "limits": ["headroom>=8.58993e+09"]}
    proof, answers = found["proof"], found["answers"]
    assert isinstance(proof, dict)
    assert isinstance(answers, list)
    assert proof["status"] == "optimal"
    assert proof["gap"] == 0
    assert answers[0]["value"] <= answers[1]["value"]


def test_limits_that_nothing_keeps_are_infeasible(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, found = ask(capsys, "--where", "step-time<=1e-6")
    assert code == 1
    assert found["answers"] == []


def test_a_wrong_limit_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASK, "--where", "speed<=3"]) == 2
    assert "speed" in capsys.readouterr().err


def test_levels_are_written_as_runs() -> None:
    assert runs(["none", "full", "full", "mlp", "none"]) == "1-2 full, 3 mlp"
    assert runs(["none"] * 4) == "nothing"
