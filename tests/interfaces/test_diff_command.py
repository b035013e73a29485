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
    assert "shardproof memory" in capsys.readouterr().err
