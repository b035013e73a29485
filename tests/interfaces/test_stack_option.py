"""A stack's calibrated step times, from the option to the saved answer."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import shardproof
from shardproof.benchmarks.validation_profiles import base_profile
from shardproof.interfaces import document, saved, words
from shardproof.interfaces.cli import main
from shardproof.interfaces.trace import step_timeline
from shardproof.interfaces.verify.check import verify
from shardproof.models import catalogue
from shardproof.models.errors import InputError
from shardproof.models.profiles import load_layer
from shardproof.models.time import TimeModel
from shardproof.models.time.run import Run
from shardproof.solver.answer import Answer

if TYPE_CHECKING:
    from pathlib import Path

ASK: dict[str, Any] = {"seq_len": 4096, "global_batch": 64}
LAYOUT = {"tp": 4, "pp": 2}
WORDS = ["llama-3.1-8b", "--cluster", "1x8:h100"]
WORDS += ["--seq-len", "4096", "--global-batch", "64"]
#: The stack and how its validated runs were projected where a row says nothing else.
STACKS = {
    "nemo-hopper-dense": Run(tp_overlap=True),
    "llm-foundry-hopper": Run(attention="fa2"),
    "maxtext-hopper": Run(),
}


def projected(stack: str, **layout: object) -> Answer:
    found = shardproof.project(
        "llama-3.1-8b", "1x8:h100", layout=LAYOUT | layout, stack=stack, **ASK
    )
    assert isinstance(found, Answer)
    return found


@pytest.mark.parametrize("stack", STACKS)
def test_an_answer_is_what_was_validated(stack: str) -> None:
    """Tests name, band and time against the profile that the validation takes."""
    found = projected(stack)
    band = load_layer("stack", stack).factors["band"]
    (only,) = found.answers
    seconds = only.projection.step_time_s
    profile = base_profile(catalogue.device("h100"), stack)
    columns = {n: np.array([c], np.int64) for n, c in only.layout.point().items()}
    model = TimeModel(found.problem, profile, run=STACKS[stack])
    assert seconds == float(model.refine(columns).step_time[0])
    assert only.projection.band == pytest.approx(
        (seconds * (1 - band), seconds * (1 + band))
    )
    assert f"+{stack}@" in found.certificate.profile
    assert "hopper-prior@" in found.certificate.profile
    assert found.certificate.calibrated
    assert f"is calibrated: step times are ±{band:.0%}" in words.certificate(found)


def test_without_a_stack_nothing_changes() -> None:
    plain = projected("")
    assert not plain.certificate.calibrated
    assert "stack" not in document.problem(plain.problem)
    assert plain.certificate.profile == "h100@1"


def test_every_time_of_a_problem_follows_its_stack() -> None:
    """Tests that the simulated step of a trace is as long as the stack makes it."""
    found, plain = projected("nemo-hopper-dense"), projected("")
    (only,) = found.answers
    ends = [
        max(e.end for e in step_timeline(a.problem, only.layout).events())
        for a in (found, plain)
    ]
    parts = only.projection.breakdown
    assert ends[0] == pytest.approx(
        only.projection.step_time_s - parts["step"] - parts["dp"] - parts["optimizer"],
        rel=0.05,
    )
    assert abs(ends[0] / ends[1] - 1) > 0.01


@pytest.mark.parametrize(
    ("model", "cluster", "stack", "listed", "not_listed"),
    [
        ("llama-3.1-8b", "1x8:h100", "nemmo", "nemo-hopper-dense", "ampere"),
        ("llama-3.1-8b", "1x8:h100", "maxtext-cdna4", "maxtext-hopper", "-moe"),
        ("llama-3.1-8b", "1x8:h200", "nvidia-prior", "torchtitan-hopper", "prior,"),
        ("mixtral-8x7b", "1x8:h100", "nemo-hopper-dense", "hopper-moe", "-dense,"),
        ("llama-3.1-8b", "1x8:mi300x", "maxtext-cdna4", "there is none", "hopper"),
    ],
)
def test_a_stack_that_does_not_fit_is_refused(
    model: str, cluster: str, stack: str, listed: str, not_listed: str
) -> None:
    with pytest.raises(InputError) as refused:
        shardproof.plan(model, cluster, stack=stack, **ASK)
    sentence = str(refused.value)
    there = sentence.partition("; there is")[2]
    assert repr(stack) in sentence
    assert listed in sentence
    assert not_listed not in there


def test_a_bad_name_ends_in_exit_two(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("plan", "project", "pareto", "book", "robust", "whatif"):
        assert main([command, *WORDS, "--stack", "nope"]) == 2
        assert "nemo-hopper-dense" in capsys.readouterr().err


def test_a_saved_plan_comes_back_and_is_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pins = [w for n in ("tp=4", "pp=2") for w in ("--pin", n)]
    order = ["--stack", "nemo-hopper-dense", "--json"]
    assert main(["plan", *WORDS, *pins, *order]) == 0
    path = tmp_path / "answer.json"
    path.write_text(capsys.readouterr().out)
    content = json.loads(path.read_text())
    schema = files("shardproof.interfaces").joinpath("schema", "answer-v1.json")
    Draft202012Validator(json.loads(schema.read_text())).validate(content)
    back = saved.load_answer(path)
    assert back.problem.stack == "nemo-hopper-dense"
    again = shardproof.plan(
        "llama-3.1-8b", "1x8:h100", pins=LAYOUT, stack="nemo-hopper-dense", **ASK
    )
    assert saved.answer_of(back) == again
    assert verify(content).verified
    content["problem"]["stack"] = "maxtext-hopper"
    assert verify(content).refuted


@pytest.mark.parametrize(
    "words",
    [
        ["pareto"],
        ["robust", "--draws", "2"],
        ["whatif", "--vary", "device.hbm_bytes=80GiB"],
        ["book"],
        ["plan", "--objective", "step-time"],
    ],
)
def test_other_commands_keep_the_stack(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pins = [w for n in ("tp=4", "pp=2", "mbs=1") for w in ("--pin", n)]
    head, *rest = words
    code = main([head, *WORDS, *rest, *pins, "--stack", "maxtext-hopper", "--json"])
    text = capsys.readouterr().out
    assert code == 0
    assert json.loads(text)["problem"]["stack"] == "maxtext-hopper"


def test_a_problem_checks_its_stack_at_birth() -> None:
    problem = projected("").problem
    with pytest.raises(InputError, match="nemo-hopper-dense"):
        replace(problem, stack="nemo-hopper")
