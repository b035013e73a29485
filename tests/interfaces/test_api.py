"""The Python functions say what the commands say."""

from __future__ import annotations

import json
from typing import Any

import pytest

import shardproof
from shardproof.interfaces.cli import main
from shardproof.interfaces.document import answer

ASK: dict[str, Any] = {"seq_len": 8192, "global_batch": 64}
WORDS = [
    "llama-3.1-8b",
    "--cluster",
    "1x8:a100-40",
    "--seq-len",
    "8192",
    "--global-batch",
    "64",
    "--json",
]
LAYOUT = {"tp": 4, "pp": 2, "recompute": "full"}
PINS = ["--pin", "tp=4", "--pin", "pp=2", "--pin", "recompute=full"]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(words) == 0
    return json.loads(capsys.readouterr().out)


def unsealed(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the command adds for `verify`."""
    added = ("digest", "space_content", "space_hash")
    return {name: value for name, value in document.items() if name not in added}


def test_plan(capsys: pytest.CaptureFixture[str]) -> None:
    found = shardproof.plan("llama-3.1-8b", "1x8:a100-40", pins={"tp": 4}, **ASK)
    assert isinstance(found, shardproof.Answer)
    assert answer(found) == unsealed(printed(capsys, "plan", *WORDS, "--pin", "tp=4"))
    assert {c.layout.tp for c in found.answers} == {4}


def test_project_is_the_plan_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a projected layout against the same layout in a plan's answers."""
    found = shardproof.project("llama-3.1-8b", "1x8:a100-40", layout=LAYOUT, **ASK)
    assert isinstance(found, shardproof.Answer)
    assert answer(found) == unsealed(printed(capsys, "project", *WORDS, *PINS))
    (only,) = found.answers
    pins = {n: only.layout.labels()[n] for n in ("tp", "pp", "vpp", "cp", "mbs", "sp")}
    planned = shardproof.plan(
        "llama-3.1-8b",
        "1x8:a100-40",
        pins={**pins, "recompute": "full", "sharding": "zero-1"},
        **ASK,
    )
    assert isinstance(planned, shardproof.Answer)
    assert only in planned.answers


def test_memory_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    found = shardproof.memory("llama-3.1-8b", "1x8:a100-40", layout=LAYOUT, **ASK)
    assert isinstance(found, shardproof.MemoryReport)
    total = sum(size for _, size in found.items)
    assert total == found.memory.per_rank[found.rank] == found.memory.peak_bytes
    shown = printed(capsys, "memory", *WORDS, *PINS)
    assert shown["memory"]["peak_bytes"] == total
    assert sum(item["bytes"] for item in shown["items"]) == total
    other = shardproof.memory(
        "llama-3.1-8b", "1x8:a100-40", layout=LAYOUT, rank=1, **ASK
    )
    assert isinstance(other, shardproof.MemoryReport)
    assert sum(size for _, size in other.items) == found.memory.per_rank[1]


def test_enumerate_counts_what_plan_counts(capsys: pytest.CaptureFixture[str]) -> None:
    found = shardproof.enumerate_feasible("llama-3.1-8b", "1x8:a100-40", **ASK)
    planned = shardproof.plan("llama-3.1-8b", "1x8:a100-40", **ASK)
    assert isinstance(planned, shardproof.Answer)
    assert found.count == planned.certificate.feasible_count
    assert found.legal_count == planned.certificate.legal_count
    shown = printed(capsys, "enumerate", *WORDS, "--top", "2")
    assert shown["count"] == found.count
    assert shown["content_hash"] == found.content_hash
    for choice in planned.answers:
        assert choice.layout in found


def test_values_may_be_given_instead_of_names() -> None:
    from shardproof.models.catalogue import architecture, cluster

    by_value = shardproof.plan(
        architecture("llama-3.1-8b"), cluster("1x8:a100-40"), top=1, **ASK
    )
    by_name = shardproof.plan("llama-3.1-8b", "1x8:a100-40", top=1, **ASK)
    assert by_value == by_name


def test_max_gpus_is_the_smaller_cluster() -> None:
    trimmed = shardproof.plan("llama-3.1-8b", "2x8:a100-40", max_gpus=8, **ASK)
    small = shardproof.plan("llama-3.1-8b", "1x8:a100-40", **ASK)
    assert isinstance(trimmed, shardproof.Answer)
    assert isinstance(small, shardproof.Answer)
    assert trimmed.answers == small.answers


def test_an_empty_set_is_infeasible(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--pin", "tp=8", "--pin", "pp=8"]
    assert main(["enumerate", *WORDS, *words]) == 1
    assert json.loads(capsys.readouterr().out)["count"] == 0


def test_a_broken_rule_is_named() -> None:
    """Tests 3 layers a stage of a 32-layer model: 32 % 3 is not 0."""
    found = shardproof.project(
        "llama-3.1-8b",
        "1x8:a100-40",
        layout={"pp": 8, "vpp": 8, "split": "even"},
        **ASK,
    )
    assert isinstance(found, shardproof.Infeasible)
    assert "layers-pp" in [c.rule for c in found.clashes]


def test_too_large_a_layout_names_memory() -> None:
    found = shardproof.project("llama-3.1-8b", "1x8:a100-40", layout={}, **ASK)
    assert isinstance(found, shardproof.Infeasible)
    assert [c.rule for c in found.clashes] == ["memory"]
    assert found.missing_bytes is not None
    listed = shardproof.memory("llama-3.1-8b", "1x8:a100-40", layout={}, **ASK)
    assert isinstance(listed, shardproof.MemoryReport)
    assert not listed.fits
    over = listed.memory.peak_bytes - listed.limit_bytes
    assert over == found.missing_bytes


def test_bad_input_raises() -> None:
    with pytest.raises(shardproof.InputError, match="unknown model"):
        shardproof.plan("lama", "1x8:a100-40", **ASK)
    with pytest.raises(shardproof.InputError, match="whole number"):
        shardproof.plan("llama-3.1-8b", "1x8:a100-40", seq_len=1.5, global_batch=8)  # type: ignore[arg-type]
