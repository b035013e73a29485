"""The board of published peaks: its bars, its rules, and odd rows."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardproof.benchmarks import memory_peaks, memory_peaks_fit
from shardproof.benchmarks.memory_peaks import DATA, GATE, entries
from shardproof.benchmarks.memory_peaks_board import board
from shardproof.benchmarks.memory_peaks_rules import (
    contradicted,
    excluded,
    repeated,
)
from shardproof.benchmarks.truth.row import Row, read
from shardproof.models.errors import InputError
from shardproof.models.memory.library_constants import constants

if TYPE_CHECKING:
    from pathlib import Path

ROWS = read(DATA)
ENTRIES = entries(ROWS)
BOARD: dict[str, Any] = board(ENTRIES, 0.99)
SIMUMAX = next(r for r in ROWS if r.id.startswith("simumax"))


def row(**columns: str) -> Row:
    """Make a row like SimuMax's first with other columns."""
    return Row({**SIMUMAX.values, **columns})


def test_every_bar_is_met_out_of_sample() -> None:
    """Medians and tails of the issue, on rows whose models had no part in a fit."""
    assert memory_peaks.missed(BOARD["groups"]) == []
    assert set(GATE) <= set(BOARD["groups"])


def test_simumax_is_nearer_than_its_own_tool() -> None:
    """Median and maximum below those of SimuMax 1.2 on the same rows, in-sample."""
    for kind in ("dense", "moe"):
        group = BOARD["groups"][f"simumax megatron-{kind}"]
        assert group["kept"]["median"] < group["other_tool"]["median"]
        assert group["kept"]["max"] < group["other_tool"]["max"]
        assert group["reserved"]["median"] <= 0.02


def test_rules_leave_out_a_tenth_of_a_source_at_most() -> None:
    """Of the rows with a peak of Megatron's CI, the playbook and various others."""
    for name in ("mcore", "playbook", "simumax", "torchtitan"):
        rows = [e for e in ENTRIES if e.source == name and e.measured is not None]
        left = [e for e in rows if e.excluded]
        assert rows and len(left) <= len(rows) / 10


def test_no_run_that_failed_is_called_safe() -> None:
    """At 0.99, on one tensor-parallel rank and on the other sources' boundary."""
    for name in ("playbook nanotron-tp1", "torchtitan torchtitan"):
        found = BOARD["boundary"][name]
        assert found["failed"] > 0 and found["failed_called_fits"] == 0
    for found in BOARD["boundary"].values():
        assert found["ran_refused"] <= 0.05 * max(1, found["ran"])


def test_the_band_of_tensor_parallel_rows_covers_nine_tenths() -> None:
    """Measured peaks between the 5th and 95th percentile of models left out."""
    from shardproof.models.memory.library_device import band

    kind, inside, count = band("nanotron-tp"), 0, 0
    for entry in ENTRIES:
        found = entry.prediction
        if found and found.kind == kind.name and entry.measured and not entry.excluded:
            ratio = entry.measured / found.peak
            inside += kind.quantile(0.05) <= ratio <= kind.quantile(0.95)
            count += 1
    assert count > 1000 and inside >= 0.9 * count


def test_the_shipped_profile_is_the_fit_of_the_shipped_rows(tmp_path: Path) -> None:
    """Every fitted constant and quantile is made again, to a hundredth."""
    out = tmp_path / "memory.json"
    assert memory_peaks_fit.main(["--out", str(out)]) == 0
    again, shipped = json.loads(out.read_text()), constants().document
    assert set(again) == set(shipped) and set(again["bands"]) == set(shipped["bands"])
    for name, entry in again.items():
        for field in ("value", "bytes") if isinstance(entry, dict) else ():
            if isinstance(entry.get(field), int | float):
                assert entry[field] == pytest.approx(shipped[name][field], rel=0.01)
    for name, found in again["bands"].items():
        pairs = zip(found["ratios"], shipped["bands"][name]["ratios"], strict=True)
        for (first, quantile), (second, kept) in pairs:
            assert first == second and quantile == pytest.approx(kept, abs=0.01)


def test_predictions_do_not_look_at_measurements() -> None:
    """Blank figures change no predicted byte."""
    chosen = [r for r in ROWS if not r.id.startswith("playbook")][::7]
    blank = ("memory_gb", "memory_stat", "oom", "notes", "tool_predictions")
    bare = [Row({**r.values, **dict.fromkeys(blank, "")}) for r in chosen]
    known = entries(chosen, ROWS)
    for with_figures, without in zip(known, entries(bare, ROWS), strict=True):
        assert with_figures.prediction == without.prediction


def test_a_stale_copy_is_found_by_its_figures() -> None:
    """Two layouts with one peak: the rarer one is left out."""
    base = {**SIMUMAX.values, "id": "mcore-a", "memory_gb": "26.4", "tp": "8"}
    others = [{**base, "id": f"mcore-{n}"} for n in "bc"]
    copy = {**base, "id": "mcore-copy", "tp": "4"}
    rows = [Row(v) for v in (base, *others, copy)]
    assert repeated(rows) == {"mcore-copy"}
    assert excluded(rows[-1], repeated(rows)) == "repeated"


def test_a_crash_beside_a_run_is_no_want_of_memory() -> None:
    """A crash with a micro-batch that also ran contradicts the table."""
    base = {**SIMUMAX.values, "micro_batch": "2", "oom": "0"}
    rows = [
        Row({**base, "id": "playbook-1"}),
        Row({**base, "id": "playbook-2", "oom": "crashed_or_oom"}),
        Row({**base, "id": "playbook-3", "oom": "crashed_or_oom", "micro_batch": "8"}),
        Row({**base, "id": "playbook-4", "oom": "crashed_or_oom", "tp": "16"}),
    ]
    assert contradicted(rows) == {"playbook-2", "playbook-3"}


_COLUMNS = st.sampled_from(sorted(SIMUMAX.values))
_ODD = st.one_of(st.just(""), st.text(max_size=12), st.integers(-9, 10**7).map(str))
_SOURCES = ("simumax", "mcore", "playbook", "torchtitan", "mbridge", "other")


@settings(deadline=None)
@given(st.sampled_from(_SOURCES), st.dictionaries(_COLUMNS, _ODD, max_size=5))
def test_an_odd_row_never_ends_the_others(source: str, odd: dict[str, str]) -> None:
    """Whatever a column says, the row is predicted or left out with a reason."""
    (found,) = entries([row(**{**odd, "id": f"{source}-odd"})])
    assert found.prediction is not None or found.excluded


def test_rows_of_a_table_come_back_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each row with its bytes, band, verdict and why it is left out."""
    path = tmp_path / "rows.csv"
    blank = {**SIMUMAX.values, "memory_gb": "", "notes": "", "id": "simumax-blank"}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(blank))
        writer.writeheader()
        writer.writerows([SIMUMAX.values, blank])
    assert memory_peaks.main(["--data", str(path), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["rows"]
    assert first["predicted"] == second["predicted"]
    sizes = first["predicted"]
    assert sizes["peak_bytes"] == sizes["allocated_bytes"] < sizes["reserved_bytes"]
    low, high = first["band"]
    assert low < sizes["peak_bytes"] < high
    assert first["verdict"] == "fits" and first["excluded"] is None


def test_the_board_is_printed_and_the_gate_passes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The shipped rows, read without any other file."""
    assert memory_peaks.main(["--gate"]) == 0
    printed = capsys.readouterr().out
    assert "simumax megatron-dense" in printed and "nothing excluded" in printed


def test_a_missing_table_is_one_sentence(tmp_path: Path) -> None:
    """And a confidence that is none is refused before any row is read."""
    with pytest.raises(InputError, match="cannot read the table"):
        memory_peaks.main(["--data", str(tmp_path / "none.csv")])
    with pytest.raises(InputError, match="between 0 and 1"):
        memory_peaks.main(["--confidence", "1"])
