"""``bench profiles`` prints what fits wrote down, and judges it by the bars."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shardproof.benchmarks.profiles import BARS, bands_of, main, rows_of
from shardproof.models.profiles import load_layer


@pytest.fixture(scope="module")
def printed() -> dict[str, object]:
    """Run the benchmark once and return its JSON."""
    from contextlib import redirect_stdout
    from io import StringIO

    text = StringIO()
    with redirect_stdout(text):
        assert main(["--json"]) == 0
    found: dict[str, object] = json.loads(text.getvalue())
    return found


def test_every_bar_has_rows(printed: dict[str, list[dict[str, object]]]) -> None:
    for start, size in BARS:
        assert any(
            str(row["kernel"]).startswith(start) and row["size"] == size
            for row in printed["rows"]
        ), start


def test_shipped_kernels_meet_the_medians(
    printed: dict[str, list[dict[str, object]]],
) -> None:
    missed = [
        row
        for row in printed["rows"]
        if row["shipped"]
        and row["bar_median"] is not None
        and row["left_out"] == "random"
        and row["median"] > row["bar_median"]  # type: ignore[operator]
    ]
    assert not missed


def test_bands_cover_what_they_say(printed: dict[str, list[dict[str, object]]]) -> None:
    covered = [float(band["coverage"]) for band in printed["bands"]]  # type: ignore[arg-type]
    assert 87 <= sum(covered) / len(covered) <= 93


def test_files_and_look_ups_keep_their_bars(printed: dict[str, object]) -> None:
    assert max(printed["bytes"].values()) <= 200_000  # type: ignore[attr-defined]
    assert float(printed["lookup_seconds"]) > 0  # type: ignore[arg-type]


def test_a_worse_fit_misses_its_bar() -> None:
    layer = load_layer("device", "h100")
    errors = layer.left_out["gemm.bf16"]
    worse = json.loads(json.dumps(errors))
    worse["random"]["from 1 GFLOP"]["median"] = 4.01
    worse["band"]["coverage"] = 80.0
    spoiled = replace(layer, left_out={"gemm.bf16": worse})
    row = next(r for r in rows_of(spoiled) if r["size"] == "from 1 GFLOP")
    assert not row["met"]
    assert not next(iter(bands_of(spoiled)))["met"]


def test_the_printed_form_marks_what_is_missed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["--gate"])
    text = capsys.readouterr().out
    assert (code == 1) == any(line.startswith("* ") for line in text.splitlines()[:200])
    assert "by bar" in text
