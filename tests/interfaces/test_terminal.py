"""What a person at a terminal sees, and what Ctrl-C does."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shardproof
from shardproof.interfaces.cli import main
from shardproof.interfaces.progress import Progress

ROOT = Path(shardproof.__file__).resolve().parent
COMMAND = [sys.executable, "-m", "shardproof.interfaces"]
SMALL = [
    "plan",
    "llama-3.1-8b",
    "--cluster",
    "1x8:a100-40",
    "--seq-len",
    "8192",
    "--global-batch",
    "64",
    "--top",
    "3",
]
#: Many seconds of work.
LONG = ["enumerate", "deepseek-v3", "--cluster", "1260x8:h800"]
LONG += ["--seq-len", "5040", "--global-batch", "10080"]


def environment(**changes: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / ".dev"),
        "TERM": "xterm",
        **changes,
    }


def on_terminal(words: list[str], columns: int) -> tuple[int, str]:
    """Run with standard output and standard error on a pseudo-terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words],
        env=environment(COLUMNS=str(columns)),
        stdout=slave,
        stderr=slave,
        stdin=slave,
    )
    os.close(slave)
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux's end of file on a terminal
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    return process.wait(), b"".join(parts).decode()


#: Colours, and what a progress bar does to the cursor on a slow machine.
STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.mark.parametrize(
    ("words", "columns"),
    [
        (SMALL, 50),
        (SMALL, 80),
        (SMALL, 220),
        (["catalogue"], 60),
        (["rules"], 80),
        (["rules"], 220),
        (["catalogue", "h100"], 80),
    ],
)
def test_nothing_is_wider_than_the_terminal(words: list[str], columns: int) -> None:
    """Tests that drawn tables fit and that nothing is cut to make them fit."""
    code, styled = on_terminal(words, columns)
    shown = STYLE.sub("", styled)
    assert code == 0
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= columns
    assert columns < 200 or "─" in shown
    assert columns > 50 or "─" not in shown


def test_narrow_and_wide_tables_say_the_same() -> None:
    """Tests that what a narrow table drops stands below it."""
    wide = STYLE.sub("", on_terminal(SMALL, 220)[1])
    narrow = STYLE.sub("", on_terminal(SMALL, 100)[1])
    assert "in every row:" in narrow
    assert "in every row:" not in wide
    for title in ("tp", "etp", "schedule", "recompute", "tokens/s/GPU", "bubble"):
        assert title in narrow
        assert title in wide


def interrupt(words: list[str], after: float) -> tuple[int, str, str]:
    process = subprocess.Popen(
        [*COMMAND, *words],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(after)
    assert process.poll() is None, "the work was too short to interrupt"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


@pytest.mark.parametrize(("engine", "after"), [("vector", 1.0), ("cpsat", 6.0)])
def test_an_interrupt_is_one_line_and_130(
    engine: str, after: float, tmp_path: Path
) -> None:
    words = [*LONG, "--engine", engine, "--out", str(tmp_path)]
    found = interrupt(words, after)
    assert found == (130, "", "shardproof: interrupted\n")
    assert not list(tmp_path.iterdir())


def test_a_reader_that_leaves_is_no_error() -> None:
    """Tests `shardproof rules | head -1`."""
    read, write = os.pipe()
    process = subprocess.Popen(
        [*COMMAND, "rules"],
        env=environment(),
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    os.close(read)
    _, err = process.communicate(timeout=30)
    assert err == b""
    assert process.returncode == 0


def test_progress_is_silent_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        progress("work", 1, 2)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_progress_is_drawn_on_a_terminal_after_a_while() -> None:
    code = (
        "import time\n"
        "from shardproof.interfaces import progress\n"
        "with progress.Progress() as report:\n"
        "    report('early', 1, 4)\n"
        "    time.sleep(progress.PATIENCE)\n"
        "    report('late', 2, 4)\n"
        "    time.sleep(0.3)\n"
    )
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment(), stderr=slave
    )
    os.close(slave)
    shown = b""
    while process.poll() is None or select.select([master], [], [], 0.1)[0]:
        try:
            shown += os.read(master, 65536)
        except OSError:
            break
    os.close(master)
    assert process.wait() == 0
    assert b"late" in shown
    assert b"early" not in shown


def test_output_survives_an_encoding_without_the_sign() -> None:
    """Tests that ± in an ASCII terminal is no traceback."""
    done = subprocess.run(
        [*COMMAND, *SMALL],
        env=environment(PYTHONIOENCODING="ascii"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "\\xb1" in done.stdout


def test_no_words_show_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "enumerate" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["rules"], SMALL, ["plan", "lama"]])
def test_closed_streams_are_no_error(words: list[str]) -> None:
    """Tests `shardproof ... >&- 2>&-`."""
    whole = subprocess.run(
        [*COMMAND, *words], env=environment(), capture_output=True, check=False
    )
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *COMMAND, *words],
        env=environment(),
        check=False,
    )
    assert closed.returncode == whole.returncode


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "rules"],
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "shardproof: the output: No space left on device\n"
