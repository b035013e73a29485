"""Saved answers are verified, and whatever is changed in one is found out."""

from __future__ import annotations

import copy
import io
import json
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import shardproof
from shardproof.interfaces.cli import main
from shardproof.interfaces.verify.check import Report, verify
from shardproof.interfaces.verify.seal import digest
from shardproof.models.errors import InputError

SMALL = "llama-3.2-1b --cluster 1x2:a100-40 --seq-len 4096 --global-batch 8 --json"
LARGE = "mixtral-8x7b --cluster 1x2:h100 --seq-len 4096 --global-batch 8 --json"
COMMANDS = {
    "plan": f"plan {SMALL} --top 4",
    "pinned": f"plan {SMALL} --pin tp=2 --top 2",
    "project": f"project {SMALL} --pin tp=2",
    "infeasible": f"plan {LARGE}",
    "clash": f"plan {SMALL} --pin pp=2 --pin vpp=3 --pin schedule=1f1b",
    "set": f"enumerate {SMALL} --top 5",
    "rules": f"enumerate {SMALL} --rules-only --top 5",
}
#: What a file says and no claim rests on: names, sources, figures of projections. Only
#: the digest shows a change of these.
UNCHECKED = (
    "schema",
    "digest",
    "engine",
    "content_hash",
    "verdict",
    "sentence",
    "profile",
    "calibrated",
    "enough_nodes",
    "parameters",
    "precision",
    "source",
    "sources",
    "cluster.name",
    "device.",
    "fabric.",
    "projection.mfu",
    "projection.bubble_fraction",
    "projection.band",
    "max_positions",
    "window",
    "vocab",  # padded
    "shared_gate",
    "score_bias",
    "space_content.name",
)


@cache
def saved(name: str) -> Any:
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(COMMANDS[name].split()) in (0, 1)
    return json.loads(out.getvalue())


@pytest.mark.parametrize("name", COMMANDS)
def test_what_the_commands_print_is_verified(name: str) -> None:
    report = verify(saved(name))
    assert report.verified, report
    assert not report.refuted


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every entry that holds no others."""
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in leaves(v, (*path, k))]
    if isinstance(value, list) and value:
        return [p for i, v in enumerate(value) for p in leaves(v, (*path, i))]
    return [path]


def entry(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def other(value: Any, draw: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + draw(st.sampled_from([-1, 1, 2, 7]))
    if isinstance(value, float):
        return value + max(abs(value), 0.01) * draw(st.sampled_from([-0.3, 0.01, 1.0]))
    if isinstance(value, str):
        return value + draw(st.sampled_from(["x", "0", "+"]))
    return 1 if value is None else None


def tampered(name: str, path: tuple[Any, ...], value: Any) -> Any:
    document = copy.deepcopy(saved(name))
    entry(document, path[:-1])[path[-1]] = value
    return document


def caught(document: Any, *, count: bool) -> bool:
    try:
        report: Report = verify(document, count=count)
    except InputError:
        return True
    return not report.verified


@settings(
    max_examples=150,
    suppress_health_check=list(HealthCheck),
    deadline=None,
    derandomize=True,
)
@given(st.data())
def test_a_change_of_any_entry_is_found_out(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(COMMANDS)))
    path = data.draw(st.sampled_from(leaves(saved(name))))
    document = tampered(name, path, other(entry(saved(name), path), data.draw))
    assert caught(document, count=False), path


def claims(name: str) -> list[tuple[Any, ...]]:
    """Entries that a claim rests on."""

    def named(path: tuple[Any, ...]) -> str:
        return ".".join(map(str, path))

    return [
        path
        for path in leaves(saved(name))
        if not any(part in named(path) for part in UNCHECKED)
        # Where no byte is claimed, what bytes follow from may change.
        and not (name in ("clash", "rules") and path[0] == "problem")
    ]


@settings(
    max_examples=150,
    suppress_health_check=list(HealthCheck),
    deadline=None,
    derandomize=True,
)
@given(st.data())
def test_a_change_of_a_claim_is_found_out_without_the_digest(
    data: st.DataObject,
) -> None:
    """Tests a forger who also writes the new digest."""
    name = data.draw(st.sampled_from(sorted(COMMANDS)))
    path = data.draw(st.sampled_from(claims(name)))
    document = tampered(name, path, other(entry(saved(name), path), data.draw))
    document["digest"] = digest(document)
    assert caught(document, count=True), path


LISTS = {
    "plan": ("answers",),
    "set": ("rows",),
    "infeasible": ("infeasible", "corrections"),
    "clash": ("infeasible", "corrections"),
}


@pytest.mark.parametrize("name", LISTS)
def test_rows_repeated_swapped_or_left_out_are_found_out(name: str) -> None:
    *above, last = LISTS[name]
    rows = entry(saved(name), LISTS[name])
    changes = [[*rows, rows[0]], [] if above else [*reversed(rows)]]
    for changed in changes:
        document = tampered(name, (*above, last), changed)
        document["digest"] = digest(document)
        assert verify(document).refuted


def test_memory_that_a_smaller_device_lacks_is_found_out() -> None:
    document = copy.deepcopy(saved("plan"))
    device = document["problem"]["cluster"]["device"]
    device["hbm_bytes"] = document["answers"][0]["memory"]["peak_bytes"] - 1
    document["digest"] = digest(document)
    assert verify(document, count=False).refuted


def test_counts_are_left_out_on_request() -> None:
    document = tampered("plan", ("certificate", "legal_count"), 10**6)
    document["digest"] = digest(document)
    assert verify(document, count=False).verified
    assert verify(document).refuted


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(saved("plan")))
    assert main(["verify", str(path)]) == 0
    assert capsys.readouterr().out.endswith("\nverified\n")
    path.write_text(json.dumps(tampered("plan", ("certificate", "gap"), 0.5)))
    assert main(["verify", str(path)]) == 1
    assert "digest: refuted" in capsys.readouterr().out
    for content in ("{", "[]", '{"schema": "shardproof/memory@1"}', '"x"'):
        path.write_text(content)
        assert main(["verify", str(path)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert main(["verify", str(tmp_path / "none.json")]) == 2


def test_other_dialects_are_not_covered(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        main(f"plan {SMALL} --dialect torchtitan --top 1".split())
    report = verify(json.loads(out.getvalue()))
    assert not report.verified
    assert not report.refuted
    assert "torchtitan" in report.checks[-1].details[0]


def test_the_report_is_what_its_schema_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = Path(shardproof.__file__).parent / "interfaces/schema/verification-v1.json"
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(saved("project")))
    assert main(["verify", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    Draft202012Validator(json.loads(schema.read_text("utf-8"))).validate(found)
    assert found["verified"]


def test_nothing_of_the_solver_is_imported() -> None:
    above = str(Path(shardproof.__file__).parents[1])
    code = (
        f"import sys; sys.path.insert(0, {above!r})\n"
        "import shardproof.interfaces.verify.check\n"
        "print(*(m for m in sys.modules if m.startswith('shardproof.')), sep='\\n')\n"
        "print(*(m for m in ('numpy', 'ortools') if m in sys.modules), sep='\\n')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = [m.removeprefix("shardproof.") for m in ran.stdout.split()]
    rest = {m for m in loaded if not m.startswith("interfaces")}
    assert rest == {"models", "models.architecture", "models.errors"}
