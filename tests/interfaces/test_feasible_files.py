"""A feasible set as files holds the whole set."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np

import shardproof
from shardproof.interfaces import feasible_files
from shardproof.interfaces.cli import main
from shardproof.models.layout import DECIDED, DERIVED, axis_code

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ASK = ["llama-3.1-8b", "--cluster", "1x8:a100-40"]
ASK += ["--seq-len", "8192", "--global-batch", "64"]


def found() -> shardproof.FeasibleSet:
    return shardproof.enumerate_feasible(
        "llama-3.1-8b", "1x8:a100-40", seq_len=8192, global_batch=64
    )


def test_rows_and_arrays_are_the_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["enumerate", *ASK, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out
    whole = found()
    with (tmp_path / "feasible-set.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == whole.count
    points = {
        tuple(
            axis_code(n, row[n]) if n in DECIDED else int(row[n])
            for n in (*DECIDED, *DERIVED)
        )
        for row in rows
    }
    assert points == {
        tuple(layout.point()[n] for n in (*DECIDED, *DERIVED))
        for layout in whole.layouts()
    }
    with np.load(tmp_path / "feasible-set.npz") as arrays:
        assert int(np.bitwise_count(arrays["bits"]).sum()) == whole.count
        assert np.array_equal(arrays["skeleton_tp"], whole.skeletons["tp"])


def test_peaks_are_those_of_the_ledger(tmp_path: Path) -> None:
    """Tests some rows against the memory command's own listing."""
    feasible_files.write_set(tmp_path, found())
    with (tmp_path / "feasible-set.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows[:: len(rows) // 3]:
        report = shardproof.memory(
            "llama-3.1-8b",
            "1x8:a100-40",
            seq_len=8192,
            global_batch=64,
            layout={n: row[n] for n in DECIDED},
        )
        assert isinstance(report, shardproof.MemoryReport)
        assert report.memory.peak_bytes == int(row["peak_bytes"])


def test_too_many_rows_leave_no_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = found()
    feasible_files.write_set(tmp_path, whole)
    monkeypatch.setattr(feasible_files, "MOST_ROWS", whole.count - 1)
    feasible_files.write_set(tmp_path, whole)
    assert [p.name for p in tmp_path.iterdir()] == ["feasible-set.npz"]
