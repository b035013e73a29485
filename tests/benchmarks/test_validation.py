"""The validation command: every row that states a layout is predicted, none crashes."""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shardproof.benchmarks import validation
from shardproof.benchmarks.truth import Row, read
from shardproof.benchmarks.validation_board import board, figures
from shardproof.benchmarks.validation_predict import predict

#: Rows of every kind: one in so many of the shipped table.
_EVERY = 60


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read(validation.DATA)[::_EVERY]


def _table(path: Any, rows: list[Row], **changes: str) -> str:
    columns = list(rows[0].values)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    for row in rows:
        writer.writerow({**row.values, **changes})
    path.write_text(text.getvalue())
    return str(path)


def test_every_row_that_states_a_layout_has_a_prediction(
    rows: list[Row], tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _table(tmp_path / "some.csv", rows)
    assert validation.main(["--data", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    shown = {row["id"] for row in found["rows"]} | set(found["unread"])
    assert shown == {row.id for row in rows}
    for row in found["rows"]:
        assert row["fault"] is None
        predicted, band = row["predicted"], row["band"]
        assert predicted["step_time_s"] > 0
        assert predicted["tokens_per_s_per_gpu"] > 0
        assert predicted["peak_bytes"] > 0
        assert band[0] <= predicted["step_time_s"] <= band[1]


def test_predictions_do_not_read_measurements(rows: list[Row], tmp_path: Any) -> None:
    blank = dict.fromkeys(
        ("step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu", "hfu"), ""
    ) | {"memory_gb": "", "tool_predictions": ""}
    plain = predict(rows, memory=False)
    emptied = read(_table(tmp_path / "blank.csv", rows, **blank))
    for one, other in zip(plain, predict(emptied, memory=False), strict=True):
        assert one.step_time_s == other.step_time_s
        assert other.error is None


def test_unknown_devices_and_models_end_no_other_row(rows: list[Row]) -> None:
    strange = [
        Row({**rows[0].values, "gpu": "unheard of"}),
        Row({**rows[0].values, "gpu": "H200", "precision": "nvfp4"}),
        Row({**rows[0].values, "gpu": "V100", "precision": "fp8"}),
        Row({**rows[0].values, "gpu": "MI325X"}),
        Row({**rows[0].values, "pp": "4", "vpp": "2", "tp": "1", "global_batch": "9"}),
        Row({"id": "empty"}),
    ]
    found = predict(strange)
    assert [one.step_time_s is not None for one in found] == [
        False,
        True,
        True,
        True,
        True,
        False,
    ]


def test_a_table_is_narrowed_by_source(
    rows: list[Row], tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _table(tmp_path / "some.csv", rows)
    validation.main(["--data", path, "--source", "VTRAIN", "--json", "--no-memory"])
    found = json.loads(capsys.readouterr().out)
    wanted = {row.id for row in rows if "vtrain" in row.text("source").lower()}
    assert {row["id"] for row in found["rows"]} == wanted


def test_figures_are_those_of_the_errors(rows: list[Row]) -> None:
    found = [one for one in predict(rows, memory=False) if one.kept]
    shown = figures(found)
    errors = []
    for one in found:
        assert one.entry.setting is not None
        measured = one.entry.setting.measured.step_time_s
        assert measured is not None
        assert one.step_time_s is not None
        errors.append(abs(one.step_time_s - measured) / measured)
    assert shown["median"] == pytest.approx(np.median(errors))
    assert shown["p90"] == pytest.approx(np.quantile(errors, 0.9))


def test_a_perfect_prediction_has_no_error_and_full_order(rows: list[Row]) -> None:
    found = []
    for one in predict(read(validation.DATA)[800:860], memory=False):
        if one.kept and one.entry.setting is not None:
            measured = one.entry.setting.measured.step_time_s
            found.append(replace(one, step_time_s=measured))
    groups = board(found)["source"]
    assert groups
    for group in groups.values():
        assert group["kept"]["median"] == 0
        assert group["kept"]["tau"] in (None, 1.0)


def test_the_shipped_rows_name_their_sources() -> None:
    text = gzip.decompress(validation.DATA.read_bytes()).decode()
    found = list(csv.DictReader(io.StringIO(text)))
    assert len(found) > 3000
    assert all("@" in row["source"] or len(row["source"]) > 20 for row in found)
    assert len({row["id"] for row in found}) == len(found)
