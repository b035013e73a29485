"""``profiles`` and ``calibrate``: listed, compared, checked, merged, fitted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pyarrow import parquet, table

from shardproof.interfaces.commands.calibrate import run as calibrate
from shardproof.interfaces.commands.profiles import run
from shardproof.models.errors import InputError
from shardproof.models.profiles import load_layer, load_profile, read_layer
from shardproof.models.profiles.layer_file import text_of

if TYPE_CHECKING:
    from pathlib import Path


def said(capsys: pytest.CaptureFixture[str], *words: str, **options: object) -> str:
    """Run the command and return what it printed."""
    settings = {"as_json": False, "out": None} | options
    assert run(words, **settings) == 0  # type: ignore[arg-type]
    return capsys.readouterr().out


def test_every_profile_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys)
    assert "h100@1*" in text
    listed = json.loads(said(capsys, as_json=True))["profiles"]
    assert listed["h100"]["layers"]["device"] == "h100@1"
    assert listed["mi325x"]["calibrated"]["device"] is False


def test_a_profile_shows_factors_errors_and_sources(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = said(capsys, "show", "h100")
    for part in ("gemm.bf16.ceiling", "region", "from 1 GFLOP", "Apache-2.0"):
        assert part in text
    layers = json.loads(said(capsys, "h100", as_json=True))["layers"]
    assert [layer["layer"] for layer in layers] == ["device", "stack", "cluster"]
    assert "stack.step" in said(capsys, "stack/nvidia-prior")


def test_differences_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(said(capsys, "diff", "mi300x", "mi325x", as_json=True))
    ceilings = found["factors"]["gemm.bf16.ceiling"]
    # AMD's achievable peaks: 708 and 843 TFLOP/s of 1,307.4.
    assert ceilings == pytest.approx([708 / 1307.4, 843 / 1307.4], abs=1e-3)
    assert "have the same factors" in said(capsys, "diff", "h100", "h100")


def test_layers_are_checked_and_merged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = load_layer("stack", "nvidia-prior")
    mine = tmp_path / "mine.json"
    document = json.loads(text_of(stack))
    document["factors"] = {"stack.step": {"value": 0.5, "source": "my log of a run"}}
    mine.write_text(json.dumps(document))
    out = tmp_path / "merged.json"
    said(capsys, "merge", "stack/nvidia-prior", str(mine), out=out)
    merged = read_layer(out)
    assert merged.factors == {**stack.factors, "stack.step": 0.5}
    assert merged.name == "merged"
    assert load_profile("hopper").with_layer(merged).stack.step == 0.5
    assert "sound" in said(capsys, "validate", str(out))
    document = json.loads(text_of(merged))
    document["factors"]["stack.magic"] = {"value": 1, "source": "none at all"}
    mine.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"no factor stack\.magic"):
        said(capsys, "validate", str(mine))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("diff", "h100"), "profiles takes nothing"),
        (("validate",), "profiles takes nothing"),
        (("h9000",), "there is no profile 'h9000'"),
        (("merge", "h100", "h200"), "needs --out"),
        (("merge", "stack/amd-prior", "device/h100"), "layers of one kind"),
    ],
)
def test_bad_words_are_refused(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    out = tmp_path / "x.json" if "one kind" in message else None
    with pytest.raises(InputError, match=message):
        run(words, as_json=False, out=out)


def measured(path: Path) -> Path:
    """Write a small table of products under a known law, one row with m = 0."""
    sides = np.array([256, 1024, 4096, 8192])
    m, n, k = (a.ravel() for a in np.meshgrid(sides, sides, sides, indexing="ij"))
    latency = (2.0 * m * n * k / (0.7 * 989e12) + 5e-6) * 1e3
    m[0] = 0
    names = ["NVIDIA H100 80GB HBM3"] * len(m)
    columns = {"device": names, "gemm_dtype": ["bfloat16"] * len(m)}
    columns |= {"m": m, "n": n, "k": k, "latency": latency}
    parquet.write_table(table(columns), path)
    return path


def test_measurements_are_imported_and_fitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = measured(tmp_path / "gemm.parquet")
    options = {"device": "", "as_json": False}
    assert calibrate("import", (str(path),), out=None, **options) == 0  # type: ignore[arg-type]
    text = capsys.readouterr().out
    assert "size: a size is below 1" in text
    assert "63" in text
    out = tmp_path / "layers"
    assert calibrate("fit", (str(path),), out=out, **options) == 0  # type: ignore[arg-type]
    layer = read_layer(out / "device" / "h100.json")
    assert layer.calibrated
    profile = load_profile("h100").with_layer(layer)
    time = profile.kernels["gemm.bf16"].seconds(m=4096, n=8192, k=8192)
    # The known law within the tenth that a fit with priors to 63 rows leaves.
    expected = 2 * 4096 * 8192**2 / (0.7 * 989e12) + 5e-6
    assert float(time) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(
    ("action", "paths", "message"),
    [
        ("guess", ("x",), "takes import or fit"),
        ("import", (), "needs a file or folder"),
        ("import", ("absent.txt",), "there is no file"),
    ],
)
def test_bad_calibrations_are_refused(
    action: str, paths: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        calibrate(action, paths, device="", out=None, as_json=False)


def test_a_fit_needs_a_place(tmp_path: Path) -> None:
    path = measured(tmp_path / "gemm.parquet")
    with pytest.raises(InputError, match="needs --out"):
        calibrate("fit", (str(path),), device="", out=None, as_json=True)
