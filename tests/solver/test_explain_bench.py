"""The benchmark of explanations runs, and its figures are of the size that is said."""

import json

import pytest

from shardproof.benchmarks.explain import BAR_POINTS, main


def test_the_bar_is_met_on_enough_points(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "--gate"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert all(row["points"] >= BAR_POINTS for row in rows[:2])
    assert all(row["conflicts"] and row["corrections"] for row in rows)
    # By hand: nothing but memory is in the way of 405 billion parameters on 8 devices.
    assert (rows[0]["conflicts"], rows[0]["corrections"]) == (1, 1)
    assert rows[0]["missing_bytes"] > 405e9 * 14 / 8 - 80 * 2**30
