"""A set goes out as Parquet and comes back the same; every axis is on the way."""

from pathlib import Path

import numpy as np
import pytest
from strategies import plain_problem

from shardproof.interfaces.cli import main
from shardproof.interfaces.feasible_parquet import (
    read_parquet,
    write_parquet,
    write_rows,
)
from shardproof.models.errors import InputError
from shardproof.models.layout import axis_code
from shardproof.models.problem import Problem
from shardproof.solver.feasible import FeasibleSet, enumerate_feasible
from shardproof.solver.space import Space

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def wide() -> tuple[Problem, Space]:
    problem, space = plain_problem()
    space = space.restrict("precision", (0, 2))
    space = space.restrict("offload", (0, 2))
    return problem, space.restrict("overlap_grads", (0, 1)).restrict(
        "overlap_tp", (0, 1)
    )


def found() -> FeasibleSet:
    return enumerate_feasible(*wide(), rules_only=True)


def test_a_set_comes_back_as_it_went(tmp_path: Path) -> None:
    path, whole = tmp_path / "set.parquet", found()
    write_parquet(path, whole)
    again = read_parquet(path, *wide())
    assert again.content_hash == whole.content_hash
    assert again.count == whole.count == len(list(again.layouts()))
    assert again.sample(20, seed=3) == whole.sample(20, seed=3)


def test_another_question_or_a_changed_file_is_refused(tmp_path: Path) -> None:
    path, whole = tmp_path / "set.parquet", found()
    write_parquet(path, whole)
    problem, space = wide()
    with pytest.raises(InputError, match="another question"):
        read_parquet(path, problem, space.restrict("vpp", (1,)))
    table = parquet.read_table(path)
    parquet.write_table(table.slice(1), path)
    with pytest.raises(InputError, match="was changed"):
        read_parquet(path, problem, space)
    path.write_text("no table")
    with pytest.raises(InputError, match="must be a Parquet file"):
        read_parquet(path, problem, space)


def test_rows_are_the_configurations_up_to_a_limit(tmp_path: Path) -> None:
    path, whole = tmp_path / "rows.parquet", found()
    assert write_rows(path, whole, 10**9) == whole.count
    table = parquet.read_table(path)
    assert table.num_rows == whole.count
    codes = [axis_code("precision", v) for v in table["precision"].to_pylist()]
    assert np.array_equal(codes, whole.columns["precision"])
    assert write_rows(path, whole, 7) == 7
    assert parquet.read_table(path).num_rows == 7


def test_a_space_with_a_workload_asks_for_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["enumerate", "--space", "llama-3.1-8b-8xh100", "--rules-only"]
    pins = ["--pin", "tp=8", "--pin", "precision=bf16"]
    path = tmp_path / "set.parquet"
    assert main([*words, *pins, "--count", "--out", str(path)]) == 0
    assert int(capsys.readouterr().out) > 0
    assert parquet.read_table(path).num_rows > 0
    assert main(["enumerate"]) == 2
    assert "needs model, cluster" in capsys.readouterr().err
