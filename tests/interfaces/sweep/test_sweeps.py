"""Sweeps: equal answers on every engine, and nothing lost when something is killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from interfaces.test_schemas import REGISTRY, SCHEMAS
from jsonschema import Draft202012Validator

from shardproof.interfaces.cli import main
from shardproof.interfaces.sweep import chunks_of, read_sweep, sweep

FILE = """\
models: [llama-3.1-8b, qwen3-8b]
clusters: ["1x8:h100", "2x8:a100-80", "1x8:no-such-device"]
seq_len: 4096
global_batch: 64
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.yaml"
    path.write_text(FILE)
    return path


def test_a_sweep_answers_as_single_plans_do(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["sweep", str(file), "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((out / "sweep.json").read_text())
    assert len(found["plans"]) == 6
    Draft202012Validator(SCHEMAS["sweep"], registry=REGISTRY).validate(found)
    for plan in found["plans"]:
        asked = plan["chunk"]
        words = ["--seq-len", "4096", "--global-batch", "64", "--top", "1", "--json"]
        code = main(["plan", asked["model"], "--cluster", asked["cluster"], *words])
        shown = capsys.readouterr()
        if "error" in plan:
            assert code == 2
            assert plan["error"][:40] in shown.err
        else:
            answers = json.loads(shown.out)["answers"], plan["answer"]["answers"]
            for one, other in zip(*answers, strict=True):
                assert one["layout"] == other["layout"]
                assert one["projection"] == other["projection"]


def test_a_driver_that_is_killed_goes_on_where_it_was(
    file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = [sys.executable, "-m", "shardproof.interfaces", "sweep", str(file)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    driver = subprocess.Popen(
        [*words, "--out", str(out), "--workers", "1"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 300
    while not list(out.glob("chunks/*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    kept = {p: p.stat().st_mtime_ns for p in out.glob("chunks/*.json")}
    assert kept
    chunks = chunks_of(read_sweep(file))
    resumed = sweep(chunks, out, workers=1)
    fresh = sweep(chunks, tmp_path / "fresh", workers=2)
    assert resumed == fresh
    assert all(p.stat().st_mtime_ns == when for p, when in kept.items())


def test_a_worker_that_is_killed_is_replaced(file: Path, tmp_path: Path) -> None:
    chunks = chunks_of(read_sweep(file))
    killed: list[int] = []

    def kill_once(text: str, done: int, total: int) -> None:
        if not killed:
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
            for pid in map(int, children.split()):
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                if b"spawn_main" in command:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    break

    found = sweep(chunks, tmp_path / "out", workers=2, progress=kill_once)
    assert killed
    assert found == sweep(chunks, tmp_path / "fresh", workers=2)


@pytest.mark.slow
def test_ray_answers_byte_for_byte_alike(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the ray extra is not installed")
    for engine in ("local", "ray"):
        words = ["--out", str(tmp_path / engine), "--runner", engine, "--workers", "2"]
        assert main(["sweep", str(file), *words]) == 0
    one, other = ((tmp_path / e / "sweep.json").read_bytes() for e in ("local", "ray"))
    assert one == other


@pytest.mark.skipif(
    shutil.which("sbatch") is None
    or subprocess.run(["sinfo", "-h"], capture_output=True).returncode != 0,
    reason="NO SLURM IS RUNNING: job arrays were not tried",
)
def test_slurm_answers_byte_for_byte_alike(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("submitit", reason="the slurm extra is not installed")
    for engine in ("local", "slurm"):
        words = ["--out", str(tmp_path / engine), "--runner", engine, "--workers", "2"]
        assert main(["sweep", str(file), *words]) == 0
    kept = [(tmp_path / e / "sweep.json").read_bytes() for e in ("local", "slurm")]
    assert kept[0] == kept[1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "models: [a]",
        FILE + "colour: blue\n",
        FILE.replace("64", "sixty"),
        FILE.replace("[llama-3.1-8b, qwen3-8b]", "7"),
        FILE.replace("[llama-3.1-8b, qwen3-8b]", "[]"),
        "a: &a [*a]",
        "\x00",
        "[" * 5000,
    ],
)
def test_bad_files_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    assert main(["sweep", str(path), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("shardproof: ")
    assert error.count("\n") == 1


def test_unknown_runners_are_named(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", str(file), "--out", str(tmp_path / "o"), "--runner", "moon"]
    assert main(words) == 2
    assert "local" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()
