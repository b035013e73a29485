"""The five questions of the README, through real processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import shardproof

ROOT = Path(shardproof.__file__).resolve().parent
SCHEMA = json.loads(
    files("shardproof.interfaces").joinpath("schema", "answer-v1.json").read_text()
)
GIB = 2**30
#: For each question its words, and the device's memory as torch reports it, in GiB
#: to two digits (NVIDIA's and AMD's own torch builds; sources in the catalogue).
QUESTIONS = {
    "llama-70b": "plan {root}/examples/llama-3.1-70b --cluster 8x8:h100 "
    "--seq-len 8192 --global-batch 512",
    "mixtral": "plan mixtral-8x22b --cluster 4x8:mi355x --seq-len 4096 "
    "--global-batch 512",
    "deepseek": "plan deepseek-v3 --cluster 256x8:h800 --seq-len 4096 "
    "--global-batch 15360",
    "llama-8b": "plan llama-3.1-8b --cluster 1x8:a100-40 --seq-len 8192 "
    "--global-batch 64",
    "llama-405b": "plan llama-3.1-405b --cluster 1x8:h100 --seq-len 8192 "
    "--global-batch 64",
}
WORLD = {"llama-70b": 64, "mixtral": 32, "deepseek": 2048, "llama-8b": 8}
FEASIBLE = sorted(WORLD)


def run(*words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".dev"), **changes}
    return subprocess.run(
        [sys.executable, "-m", "shardproof.interfaces", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@cache
def asked(name: str, *more: str) -> subprocess.CompletedProcess[str]:
    words = QUESTIONS[name].format(root=ROOT).split()
    return run(*words, *more)


@cache
def document(name: str) -> Any:
    return json.loads(asked(name, "--json").stdout)


@pytest.mark.parametrize("name", QUESTIONS)
def test_documents_follow_the_schema(name: str) -> None:
    Draft202012Validator(SCHEMA).validate(document(name))


@pytest.mark.parametrize("name", FEASIBLE)
def test_answers_are_consistent(name: str) -> None:
    """Tests each answer by arithmetic that needs nothing of the solver."""
    done = asked(name, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = document(name)
    problem, proof = found["problem"], found["certificate"]
    limit = problem["cluster"]["device"]["hbm_bytes"]
    assert problem["cluster"]["devices"] == WORLD[name]
    assert proof["status"] == "complete"
    assert proof["gap"] == 0
    assert len(found["answers"]) <= proof["feasible_count"] <= proof["legal_count"]
    times = [a["projection"]["step_time_s"] for a in found["answers"]]
    assert times == sorted(times)
    assert proof["bound"] <= times[0]
    for answer in found["answers"]:
        check(answer, problem, limit)


def check(answer: Any, problem: Any, limit: int) -> None:
    layout, memory, projection = (
        answer[key] for key in ("layout", "memory", "projection")
    )
    tokens = problem["global_batch"] * problem["seq_len"]
    world = problem["cluster"]["devices"]
    sizes = {k: layout[k] for k in ("tp", "pp", "cp", "ep", "etp", "dp", "edp", "mbs")}
    assert sizes["tp"] * sizes["pp"] * sizes["cp"] * sizes["dp"] == world
    assert sizes["etp"] * sizes["ep"] * sizes["pp"] * sizes["edp"] == world
    assert sizes["mbs"] * sizes["dp"] * layout["m"] == problem["global_batch"]
    assert memory["peak_bytes"] == max(memory["per_rank"]) <= limit
    assert len(memory["per_rank"]) == layout["pp"]
    step = projection["step_time_s"]
    assert projection["tokens_per_s_per_gpu"] == pytest.approx(tokens / step / world)
    assert projection["band"][0] < step < projection["band"][1]
    assert sum(projection["breakdown"].values()) == pytest.approx(step, rel=1e-6)
    # 6 FLOPs a parameter and token bound a dense model's MFU from below.
    if problem["model"].startswith("llama"):
        peak = problem["cluster"]["device"]["peak_flops"]["bf16"]
        least = 6 * problem["parameters"] * 0.9 * tokens / step / world / peak
        assert least <= projection["mfu"] < 1


@pytest.mark.parametrize("name", FEASIBLE)
def test_tables_are_plain_when_piped(name: str) -> None:
    done = asked(name)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert done.stdout.isprintable() or "│" not in done.stdout
    assert "uncalibrated" in done.stdout
    assert "complete: all" in done.stdout
    assert f"{document(name)['certificate']['feasible_count']:,}" in done.stdout


def test_too_large_a_model_is_proven_infeasible() -> None:
    done = asked("llama-405b")
    found = document("llama-405b")["infeasible"]
    assert done.returncode == 1
    assert asked("llama-405b", "--json").returncode == 1
    assert "memory" in [c["rule"] for c in found["clashes"]]
    missing = found["missing_bytes"]
    assert f"{missing:,} bytes" in done.stdout
    # Weights, gradients and optimizer state alone: 18 bytes a parameter over 8 GPUs.
    least = 18 * 405_853_388_800 / 8 - 80 * GIB
    assert missing > least
    # 18 bytes a parameter need 86 devices of 84.9e9 bytes: 16 nodes of the doublings.
    assert found["enough_nodes"] >= 16


def test_a_name_and_its_config_ask_the_same() -> None:
    """Tests that a config.json is read as the catalogue's own entry."""
    named = QUESTIONS["llama-70b"].replace("{root}/examples/", "").split()
    by_name = json.loads(run(*named, "--json").stdout)
    by_file = document("llama-70b")
    assert by_name["answers"] == by_file["answers"]
    assert by_name["problem"]["parameters"] == 70_553_706_496


def test_answers_repeat_byte_for_byte() -> None:
    again = run(*QUESTIONS["llama-8b"].split(), "--json", PYTHONHASHSEED="7")
    assert again.stdout == asked("llama-8b", "--json").stdout


def test_out_writes_the_same_document(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    done = run(*QUESTIONS["llama-8b"].split(), "--out", str(folder))
    assert done.returncode == 0
    assert sorted(p.name for p in folder.iterdir()) == ["answer.json", "answer.txt"]
    assert json.loads((folder / "answer.json").read_text()) == document("llama-8b")
    assert (folder / "answer.txt").read_text() == done.stdout


def test_infeasible_writes_its_document(tmp_path: Path) -> None:
    pins = [
        "--pin",
        "tp=8",
        "--pin",
        "pp=1",
        "--pin",
        "cp=1",
        "--pin",
        "mbs=1",
        "--json",
    ]
    words = QUESTIONS["llama-405b"].split()
    done = run(*words, *pins, "--out", str(tmp_path))
    assert done.returncode == 1
    assert (tmp_path / "answer.json").read_text() == done.stdout
    Draft202012Validator(SCHEMA).validate(json.loads(done.stdout))


def test_the_readme_asks_these_questions() -> None:
    """Tests that the README's commands are those tested here, and one for Python."""
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = re.findall(r"^\$ shardproof (.*?)(?: --top \d+)?$", readme, re.MULTILINE)
    assert shown == [words.replace("{root}/", "") for words in QUESTIONS.values()]


def test_the_readmes_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert "'tp': 4" in capsys.readouterr().out
