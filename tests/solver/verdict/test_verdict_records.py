"""The rules say what megatron-core said, in the cases recorded."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest
from oracles.verdict.__main__ import digest
from verdict_cases import drawn_cases, family_cases

from shardproof.benchmarks.verdict import (
    LEAST,
    STAGES,
    by_rule,
    by_stage,
    has_families,
    judge_all,
    main,
    not_by_machine,
    report,
)
from shardproof.benchmarks.verdict_records import (
    RECORDS,
    Recorded,
    provenance,
    read_records,
)
from shardproof.solver.rules import rules

if TYPE_CHECKING:
    from shardproof.benchmarks.verdict import Judged

#: Every so many recorded cases are judged here; ``bench verdict`` judges all.
_STRIDE = 17


@cache
def recorded() -> list[Recorded]:
    return read_records()


@cache
def sample() -> list[Judged]:
    return judge_all(recorded()[::_STRIDE])


def test_a_sample_agrees_case_by_case() -> None:
    wrong = [j for j in sample() if not j.agrees]
    assert len(sample()) > 1000
    assert not wrong, [(j.recorded.kind, j.recorded.stage, j.broken) for j in wrong]


def test_refusals_come_from_the_stage_that_a_broken_rule_names() -> None:
    counts = by_stage(sample())
    assert {name for name, count in counts.items() if count.of} == set(STAGES)
    assert all(count.agree == count.of for count in counts.values()), counts


def test_what_asked_is_the_oracle_beside_these_tests() -> None:
    found = provenance()
    assert found["oracle"] == digest()
    assert found["megatron-core"] == "0.16.1"


def test_every_rule_that_can_be_asked_has_both_families() -> None:
    numbers = Counter(one.kind for one in recorded())
    for rule in rules("megatron@0.16"):
        if has_families(rule):
            assert numbers[rule.id] >= LEAST, rule.id
            assert numbers[f"{rule.id} ok"] >= LEAST, rule.id


def test_draws_are_many_and_about_half_of_them_legal() -> None:
    drawn = [one.legal for one in recorded() if one.kind == "drawn"]
    assert len(recorded()) >= 10_000
    assert len(drawn) >= 5_000
    assert 0.4 < sum(drawn) / len(drawn) < 0.6


def test_families_are_legal_on_one_side_and_not_on_the_other() -> None:
    checked = {r.id for r in rules("megatron@0.16") if r.decides}
    for one in recorded():
        if one.kind in checked:
            assert not one.legal, one
        if one.kind.endswith(" ok"):
            assert one.legal, one
            assert one.step is not False, one


def test_steps_fail_where_a_rule_of_steps_is_broken_alone() -> None:
    in_step = {r.id for r in rules("megatron@0.16") if r.checker == "step"}
    asked = [one for one in recorded() if one.kind in in_step]
    assert {one.kind for one in asked} == {
        "bias-alone",
        "instances-sharding",
        "recompute-bias",
        "recompute-mtp",
        "recompute-uniform",
    }
    assert all(one.legal and one.step is False for one in asked)


def test_only_some_rules_are_left_to_others() -> None:
    """What core itself refuses is never among them."""
    for rule in not_by_machine():
        assert (
            rule.checker
            in ("launcher", "transformer-engine", "environment", "fsdp", "product")
            or rule.kind != "hard"
        ), rule.id
    assert sum(rule.machine_checked for rule in rules("megatron@0.16")) >= 106


def test_records_are_what_the_generators_make() -> None:
    made = [*family_cases(0, 2), *drawn_cases(0, 20)]
    known: dict[str, list[Recorded]] = {}
    for one in recorded():
        known.setdefault(one.kind, []).append(one)
    seen: Counter[str] = Counter()
    for case in made:
        kind = case["kind"]
        stored = known[kind][seen[kind]].case
        seen[kind] += 1
        arch = {k: v for k, v in case["arch"].items() if k != "name"}
        assert stored == {
            **{k: case[k] for k in ("world", "global_batch", "micro_batch", "seq")},
            "config": case["config"],
            "arch": stored["arch"] | arch,
        }


def test_a_false_record_is_seen() -> None:
    one = sample()[0]
    lied = replace(one.recorded, legal=not one.recorded.legal)
    (judged,) = judge_all([lied])
    assert not judged.agrees
    figures = report([judged], {})
    assert figures["all"]["agree"] == 0
    name = lied.kind.removesuffix(" ok")
    counts = by_rule([judged])[name]
    assert sum(count.of - count.agree for count in counts) == 1


def test_the_benchmark_prints_and_gates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "--gate", "--sample", "400"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["all"]["agree"] == figures["all"]["of"] > 40
    sources = {row["id"]: row["source"] for row in figures["not_machine_checked"]}
    assert "arguments.py" in sources["seq-cp"]
    assert "TransformerEngine" in sources["fp8-sides"]
    assert main(["--sample", "400"]) == 0
    assert "restated, not run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sample", "0"], "--sample is at least 1"),
        (["--data", "nowhere.json.gz"], "nowhere.json.gz holds no recorded"),
        (["--sample", "4000", "--live", "--python", "no-python"], "no-python"),
    ],
)
def test_bad_words_are_answered_in_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_records_fit_in_little() -> None:
    assert RECORDS.stat().st_size < 300_000
