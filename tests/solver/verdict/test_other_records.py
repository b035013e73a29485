"""The rules say what DeepSpeed and Accelerate said, in the cases recorded."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest
from other_cases import FAMILIES, other_cases
from record_others import digest

from shardproof.benchmarks.verdict import main
from shardproof.benchmarks.verdict_others import (
    LEAST,
    READERS,
    Other,
    asked_rules,
    broken,
    figures,
    read_others,
)
from shardproof.models.errors import InputError
from shardproof.solver.rules import rules

if TYPE_CHECKING:
    from pathlib import Path

DIALECTS = sorted(READERS)


@cache
def recorded(dialect: str) -> list[Other]:
    return read_others()[dialect][1]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_verdict_agrees(dialect: str) -> None:
    found = figures(dialect, recorded(dialect))
    assert found["all"]["agree"] == found["all"]["of"] > 3000
    assert found["short"] == []
    assert found["drawn"]["of"] >= 1000
    assert 0.3 < found["drawn"]["legal"] / found["drawn"]["of"] < 0.7


@pytest.mark.parametrize("dialect", DIALECTS)
def test_families_are_legal_on_one_side_and_not_on_the_other(dialect: str) -> None:
    numbers: Counter[str] = Counter()
    for one in recorded(dialect):
        if one.kind != "drawn":
            assert (one.stage == "") == one.kind.endswith(" ok"), one
            numbers[one.kind] += 1
    for rule in asked_rules(dialect):
        assert numbers[rule.id] >= LEAST, rule.id
        assert numbers[f"{rule.id} ok"] >= LEAST, rule.id


@pytest.mark.parametrize("dialect", DIALECTS)
def test_refusals_come_from_the_stage_that_the_rule_names(dialect: str) -> None:
    """A family is refused where its rule says, or earlier by the same words."""
    places: dict[str, set[str]] = {}
    for one in recorded(dialect):
        places.setdefault(one.kind, set()).add(one.stage)
    for rule in asked_rules(dialect):
        assert rule.where in places[rule.id], (rule.id, places[rule.id])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_hard_rule_has_families_or_is_this_planners_own(dialect: str) -> None:
    asked = {rule.id for rule in asked_rules(dialect)}
    assert set(FAMILIES[dialect]) == asked
    for rule in rules(dialect):
        assert rule.id in asked or rule.out_of_reach, rule.id


@pytest.mark.parametrize("dialect", DIALECTS)
def test_records_are_what_the_generators_make(dialect: str) -> None:
    stored: dict[str, list[Other]] = {}
    for one in recorded(dialect):
        stored.setdefault(one.kind, []).append(one)
    seen: Counter[str] = Counter()
    for case in other_cases(dialect, 0, 2, 20):
        kind = case.pop("kind")
        assert stored[kind][seen[kind]].case == json.loads(json.dumps(case))
        seen[kind] += 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_asked_is_the_oracle_beside_these_tests(dialect: str) -> None:
    told, _ = read_others()[dialect]
    assert told["oracle"] == digest(dialect)
    assert told[dialect] == {"deepspeed": "0.19.8", "accelerate": "1.15.0"}[dialect]


def test_a_false_record_is_seen() -> None:
    (one, *_) = (r for r in recorded("accelerate") if r.kind == "sizes")
    lied = Other(kind=one.kind, case=one.case, stage="")
    assert [rule.id for rule in broken("accelerate", one.case)] == ["sizes"]
    assert figures("accelerate", [lied])["all"] == {"agree": 0, "of": 1}


def test_the_benchmark_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--gate", "--sample", "400", "--seed", "a commit"]) == 0
    printed = capsys.readouterr().out
    assert "pipeline-zero" in printed
    assert "fsdp2-shards" in printed
    assert "left without a reason: none" in printed


def test_a_file_without_records_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.json.gz"
    with pytest.raises(InputError, match=r"none\.json\.gz holds no recorded"):
        read_others(path)


@pytest.mark.parametrize(
    ("dialect", "case", "said"),
    [
        ("deepspeed", {"config": []}, "config is a mapping"),
        ("deepspeed", {"config": {}, "world": 0}, "world is a whole number"),
        ("accelerate", {"parallelism": 3}, "parallelism is a mapping"),
        (
            "accelerate",
            {"world": 8, "fsdp": {"fsdp_version": 3}},
            "fsdp_version is 1 or 2, got 3",
        ),
    ],
)
def test_odd_cases_are_named(dialect: str, case: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        READERS[dialect](case)  # type: ignore[arg-type]
