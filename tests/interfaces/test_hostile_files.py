"""Files and numbers that no command can use end in exit 2 and one sentence."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from shardproof.interfaces.cli import main

if TYPE_CHECKING:
    from pathlib import Path

ONE_NODE = ("llama-3.1-8b", "--cluster", "1x8:h100", "--seq-len", "4096")
SMALL = (*ONE_NODE, "--global-batch", "64", "--pin", "tp=8")
READERS = {
    "layout": ("memory", *SMALL, "--layout"),
    "layer": ("profiles", "validate"),
    "measurements": ("calibrate", "import"),
    "runs": ("bench", "validation", "--data"),
    "cases": ("bench", "legality", "--data"),
    "tensors": ("bench", "memory", "--data"),
    "tables": ("bench", "profiles", "--data"),
    "verdicts": ("bench", "verdict", "--data"),
    "answer": ("verify",),
    "document": ("diff",),
    "models": ("catalogue", "add"),
}


def _corrupt() -> bytes:
    """Return a gzip file whose header is sound and whose body is not."""
    packed = bytearray(gzip.compress(b"[1, 2, 3]" * 100))
    packed[12:20] = b"\xff" * 8
    return bytes(packed)


FILES = {
    "empty": b"",
    "zeros": bytes(100_000),
    "deep": b"[" * 20_000,
    "deep.gz": gzip.compress(b"[" * 20_000),
    "digits": b"[" + b"9" * 10_000 + b"]",
    "truncated": b'{"schema": "shardproof/answer@1", "answers": [',
    "not-finite": b"[NaN, -Infinity]",
    "latin": b"\xff\xfe\xfd,id\n",
    "corrupt.gz": _corrupt(),
}


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command line that must be refused; return what it says."""
    code = main(words)
    shown = capsys.readouterr()
    assert (code, shown.out) == (2, ""), shown
    lines: list[str] = shown.err.strip().splitlines()
    assert len(lines) == 1, shown.err
    assert "Traceback" not in lines[0]
    return lines[0]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("reader", READERS)
def test_a_file_of_anything_else_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, reader: str, name: str
) -> None:
    path = tmp_path / f"{name.removesuffix('.gz')}.json"
    if name.endswith(".gz"):
        path = path.with_suffix(".json.gz")
    path.write_bytes(FILES[name])
    other = ("tp=2",) if reader == "document" else ()
    refused(capsys, *READERS[reader], str(path), *other)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", FILES)
def test_a_sweep_of_anything_else_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_bytes(FILES[name])
    refused(capsys, "sweep", str(path), "--out", str(tmp_path / "out"))


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e400"])
@pytest.mark.parametrize(
    "words",
    [
        ("plan", *SMALL, "--objective", "cost", "--price"),
        ("plan", *SMALL, "--objective", "energy", "--watts"),
        ("plan", *SMALL, "--objective", "train-time", "--train-tokens"),
        ("plan", *SMALL, "--stages", "--seconds"),
        ("plan", *SMALL, "--batch-tolerance"),
        ("pareto", *SMALL, "--objective", "cost", "--price"),
        ("whatif", *SMALL, "--target"),
        ("robust", *SMALL, "--seed"),
    ],
    ids=lambda words: words[-1],
)
def test_numbers_that_mean_nothing_are_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], value: str
) -> None:
    assert words[-1].removeprefix("--").split("-")[0] in refused(capsys, *words, value)


def test_a_limit_without_end_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "plan", *SMALL, "--where", "headroom>=1e400")
    assert "headroom" in said


def test_a_fit_without_a_place_is_refused_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "measured.json"
    path.write_text("[]")
    assert "--out" in refused(capsys, "calibrate", "fit", str(path))


def test_an_empty_table_is_not_taken_for_agreement(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("")
    said = refused(capsys, "bench", "validation", "--gate", "--data", str(path))
    assert "column 'id'" in said


def test_a_source_that_no_run_has_is_not_taken_for_agreement(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("bench", "validation", "--gate", "--source", "no-such-source")
    assert "no-such-source" in refused(capsys, *words)


@pytest.mark.parametrize("high", [2**31, 20_000])
def test_a_range_without_end_is_not_listed(
    capsys: pytest.CaptureFixture[str], high: int
) -> None:
    said = refused(capsys, "book", *SMALL, "--nodes", f"1..{high}")
    assert "at most 10,000 values" in said
