"""Bad input ends in exit 2 and one sentence, through the real command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import shardproof
from shardproof.interfaces.cli import main

ROOT = Path(shardproof.__file__).resolve().parent
PLAN = ("--cluster", "8x8:h100", "--seq-len", "8192", "--global-batch", "512")
ALL_DATA_PARALLEL = ("--pin", "tp=1", "--pin", "pp=1", "--pin", "cp=1")
CONFIG = ROOT / "examples" / "llama-3.1-70b" / "config.json"


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run in this process; return the sentence."""
    code = main(words)
    shown = capsys.readouterr()
    assert code == 2, shown
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert len(lines) == 1, shown.err
    assert lines[0].startswith("shardproof: ")
    assert len(lines[0]) <= 1100
    assert "Traceback" not in lines[0]
    return lines[0]


def changed(*changes: str) -> list[str]:
    """Return a good plan's words with some options replaced."""
    words = ["plan", "llama-3.1-8b", *PLAN]
    for name, value in zip(changes[::2], changes[1::2], strict=True):
        words[words.index(name) + 1] = value
    return words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan"], "MODEL"),
        (["plann"], "plan"),
        (["--nonsense"], "--nonsense"),
        (["plan", "llama-3.1-8b"], "--cluster"),
        (changed("--seq-len", "8k"), "--seq-len"),
        (changed("--seq-len", ""), "--seq-len"),
        (changed("--seq-len", "1" * 5000), "--seq-len"),
        ([*changed(), "--top", "x"], "--top"),
        ([*changed(), "--unknown", "1"], "--unknown"),
        ([*changed(), "--pin"], "--pin"),
    ],
)
def test_usage_errors(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert said in refused(capsys, *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (changed("--seq-len", "0"), "sequence length"),
        (changed("--seq-len", "-8192"), "sequence length"),
        (changed("--seq-len", "1" + "0" * 30), "sequence length"),
        (changed("--global-batch", "0"), "global batch"),
        (changed("--global-batch", "-1"), "global batch"),
        (changed("--global-batch", "1" + "0" * 30), "global batch"),
        (
            [*changed("--global-batch", "7"), *ALL_DATA_PARALLEL],
            "must be a multiple",
        ),
        (changed("--cluster", "0x8:h100"), "at least 1 of nodes"),
        (changed("--cluster", "8x0:h100"), "at least 1 of GPUs"),
        (changed("--cluster", "-1x8:h100"), "NODESxGPUS:DEVICE"),
        (changed("--cluster", "8x8"), "NODESxGPUS:DEVICE"),
        (changed("--cluster", ""), "cluster"),
        (changed("--cluster", "9" * 40 + "x8:h100"), "device"),
        (changed("--cluster", "8x8:h10"), "did you mean"),
        (changed("--cluster", "8x8:ü100"), "unknown device"),
        ([*changed(), "--pin", "tp=3"], "a pin must be one of its axis's values"),
        ([*changed(), "--pin", "tp=-1"], "at least 1"),
        ([*changed(), "--pin", "tp"], "AXIS=VALUE"),
        ([*changed(), "--pin", "tp=8", "--pin", "tp=4"], "twice"),
        ([*changed(), "--pin", "dp=8"], "follows"),
        ([*changed(), "--axis", "vpp="], "AXIS=VALUE"),
        ([*changed(), "--axis", "vpp=1,,2"], "at least 1"),
        ([*changed(), "--axis", "vppp=1"], "did you mean vpp"),
        ([*changed(), "--max-gpus", "0"], "at least 1"),
        ([*changed(), "--max-gpus", "-5"], "at least 1"),
        ([*changed(), "--top", "0"], "top"),
        ([*changed(), "--top", "1" + "0" * 30], "top"),
        ([*changed(), "--optimizer", "adamw"], "optimizer"),
        ([*changed(), "--precision", "fp7"], "precision"),
        ([*changed(), "--dialect", "megatron@0.99"], "release"),
        ([*changed(), "--dialect", ""], "dialect"),
        ([*changed(), "--space", "nowhere"], "space"),
        ([*changed(), "--out", ""], "--out"),
        ([*changed(), "--out", "/proc/nowhere"], "--out"),
        (["enumerate", *changed()[1:], "--engine", "sat"], "engine"),
        (["enumerate", *changed()[1:], "--top", "-1"], "top"),
        (["memory", *changed()[1:], "--rank", "9"], "rank"),
        (["project", *changed()[1:], "--pin", "tp=7"], "number of devices"),
        (["project", *changed()[1:], "--pin", "mbs=3"], "global batch"),
        (["rules", "--dialect", "nemo9"], "dialect"),
        (["catalogue", "h1000"], "did you mean"),
        (["bench", "memori"], "did you mean memory"),
    ],
)
def test_bad_values(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert said in refused(capsys, *words)


@pytest.mark.parametrize(
    ("name", "near"),
    [("lama-3.1-70b", "llama-3.1-70b"), ("mixtral-8x22", "mixtral-8x22b")],
)
def test_an_unknown_model_suggests_the_nearest(
    capsys: pytest.CaptureFixture[str], name: str, near: str
) -> None:
    said = refused(capsys, "plan", name, *PLAN)
    assert "unknown model" in said
    assert near in said


@pytest.mark.parametrize(
    "name", ["", " ", "ラマ", "\udcff", "x" * 5000, "a\nb", "../.."]
)
def test_odd_model_names(capsys: pytest.CaptureFixture[str], name: str) -> None:
    refused(capsys, "plan", name, *PLAN)


GOOD = CONFIG.read_text("utf-8")
CONFIGS = {
    "truncated": GOOD[: len(GOOD) // 2],
    "empty": "",
    "not-json": "model: llama",
    "binary": "\0\1\2",
    "a-list": "[1, 2]",
    "a-number": "7",
    "deep": "[" * 100_000,
    "no-type": "{}",
    "negative": GOOD.replace("8192,", "-8192,", 1),
    "huge-number": GOOD.replace(
        '"num_hidden_layers": 80', f'"num_hidden_layers": {10**30}'
    ),
    "text-number": GOOD.replace('"num_hidden_layers": 80', '"num_hidden_layers": "80"'),
    "not-a-number": GOOD.replace('"num_hidden_layers": 80', '"num_hidden_layers": NaN'),
    "other-family": GOOD.replace('"model_type": "llama"', '"model_type": "mamba"'),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_bad_configs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, case: str
) -> None:
    path = tmp_path / "config.json"
    path.write_text(CONFIGS[case])
    refused(capsys, "plan", str(path), *PLAN)


def test_a_huge_config_is_not_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(2**31)
    refused(capsys, "plan", str(path), *PLAN)


def test_a_folder_without_config(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "config.json" in refused(capsys, "plan", str(tmp_path), *PLAN)


@pytest.mark.parametrize(
    "text",
    [
        "nmae: x\nhidden: 8",
        "hidden: [",
        "- 1",
        "&a [*a]",
        "name: !!python/name:os.system",
    ],
)
def test_bad_yaml_models(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(text)
    refused(capsys, "plan", str(path), *PLAN)


@pytest.mark.parametrize("text", ["nodes: 0", "nodez: 8", "[", "7"])
def test_bad_yaml_clusters(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    refused(capsys, *changed("--cluster", str(path)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "--out" in refused(capsys, *changed(), "--out", str(tmp_path / "new"))


def run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".dev")}
    return subprocess.run(
        [sys.executable, "-m", "shardproof.interfaces", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "llama"],
        changed("--cluster", "0x8:h100"),
        ["plan", os.fsdecode(b"\xff")],
    ],
)
def test_real_processes_end_alike(words: list[str]) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("shardproof: ")
    assert done.stderr.count("\n") == 1


def test_bad_input_leaves_no_files(tmp_path: Path) -> None:
    done = run(*changed("--seq-len", "0"), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert not list(tmp_path.iterdir())


def test_help_and_version() -> None:
    assert "plan" in run().stdout
    assert run("--help").returncode == 0
    assert "pipeline" in run("bench", "--help").stdout
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout == f"shardproof {shardproof.__version__}\n"
