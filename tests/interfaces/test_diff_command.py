"""Where the bytes of two configurations part."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from shardproof.interfaces.cli import main
from shardproof.interfaces.commands.diff import differences

if TYPE_CHECKING:
    from pathlib import Path

ASK = "llama-3.1-8b --cluster 1x8:h100 --seq-len 4096 --global-batch 64 --pin tp=4"


def saved(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, pins: str
) -> tuple[Path, Any]:
    assert main([*f"memory {ASK} {pins} --json".split()]) == 0
    text = capsys.readouterr().out
    path = folder / f"{name}.json"
    path.write_text(text)
    return path, json.loads(text)


def test_differences_add_up_to_that_of_the_peaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, one = saved(tmp_path, capsys, "a", "--pin mbs=1")
    second, other = saved(tmp_path, capsys, "b", "--pin mbs=2")
    change = other["memory"]["peak_bytes"] - one["memory"]["peak_bytes"]
    table, total = differences(one, other)
    assert total == change > 0
    shown = [int(row[4].replace(",", "")) for row in table.rows[:-1]]
    assert sum(shown) == change
    assert [abs(n) for n in shown] == sorted((abs(n) for n in shown), reverse=True)
    assert main(["diff", str(first), str(second)]) == 0
    text = capsys.readouterr().out
    assert f"{change:,} bytes) more" in text
    assert main(["diff", str(second), str(first)]) == 0
    assert f"{change:,} bytes) less" in capsys.readouterr().out


def test_a_configuration_does_not_differ_from_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, document = saved(tmp_path, capsys, "a", "")
    table, total = differences(document, document)
    assert total == 0
    assert len(table.rows) == 1
    assert main(["diff", str(path), str(path)]) == 0
    assert "Both need the same." in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schema": "shardproof/answer@1"}',
        '{"schema": "shardproof/memory@1"}',
        '{"schema": "shardproof/memory@1", "items": [1], "layout": {}, "rank": 0}',
    ],
)
def test_other_files_are_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert main(["diff", str(path), str(path)]) == 2
    assert "write it with `shardproof " in capsys.readouterr().err


def test_a_layout_is_of_the_other_ones_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, one = saved(tmp_path, capsys, "a", "--pin mbs=1")
    _, other = saved(tmp_path, capsys, "b", "--pin pp=2 --pin mbs=2")
    change = other["memory"]["peak_bytes"] - one["memory"]["peak_bytes"]
    assert main(["diff", str(first), "tp=4,pp=2,mbs=2"]) == 0
    assert f"({abs(change):,} bytes)" in capsys.readouterr().out
    assert main(["diff", "tp=4", "tp=2"]) == 2
    assert "states the problem" in capsys.readouterr().err


def test_a_saved_answer_stands_for_its_first_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory, _ = saved(tmp_path, capsys, "a", "--pin mbs=1")
    assert main([*f"project {ASK} --pin mbs=1 --json".split()]) == 0
    answer = tmp_path / "answer.json"
    answer.write_text(capsys.readouterr().out)
    assert main(["diff", str(memory), str(answer)]) == 0
    assert "Both need the same." in capsys.readouterr().out


def test_layout_option_takes_axes_documents_and_yaml(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, one = saved(tmp_path, capsys, "a", "--pin pp=2 --pin mbs=2")
    axes = tmp_path / "axes.yaml"
    axes.write_text("tp: 4\npp: 2\nmbs: 2\nsp: true\n")
    ask = ASK.removesuffix(" --pin tp=4")
    for text in ("tp=4,pp=2,mbs=2", str(first), str(axes)):
        assert main([*f"memory {ask} --json --layout {text}".split()]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["memory"] == one["memory"]
        assert sum(found["phases"].values()) == max(found["memory"]["per_rank"])
    assert main([*f"memory {ask} --layout nowhere.json".split()]) == 2
    assert "nowhere.json" in capsys.readouterr().err


def test_waterfall_ends_at_the_peak_and_items_list_tensors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*f"memory {ASK}".split()]) == 0
    shown = capsys.readouterr().out
    assert main([*f"memory {ASK} --items".split()]) == 0
    listed = capsys.readouterr().out
    assert "layer 0: queries" in listed
    assert "layer 0: queries" not in shown
    peak = next(
        line.split()[1] for line in shown.splitlines() if line.startswith("peak")
    )
    total = next(
        line.split()[1] for line in listed.splitlines() if line.startswith("total")
    )
    assert peak == total


def test_offload_tells_what_lies_on_the_host(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ask = f"memory {ASK} --layout offload=optimizer"
    assert main([*f"{ask} --json".split()]) == 0
    found = json.loads(capsys.readouterr().out)
    assert min(found["host_bytes"]) > 0
    assert main([*ask.split()]) == 0
    assert "On the host:" in capsys.readouterr().out
