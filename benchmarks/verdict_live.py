"""Ask megatron-core again, in a process of its own: the oracle of the tests."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..models.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .verdict_records import Recorded

_TESTS = Path(__file__).resolve().parents[1] / "tests"
_HOUR = 3600


def _call(python: str, *words: str) -> str:
    environment = dict(os.environ, PYTHONPATH=str(_TESTS))
    try:
        done = subprocess.run(
            [python, "-m", "oracles.verdict", *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=10 * _HOUR,
            check=False,
        )
    except OSError as error:
        raise InputError(f"{python} cannot be run: {error}") from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no word"]
        raise InputError(
            f"a live verdict needs megatron-core 0.16.1 and torch, pip install "
            f"'shardproof[oracle]': {python} said {last[0][:200]}"
        )
    return done.stdout


def ask_again(
    found: Sequence[Recorded], python: str
) -> tuple[list[Recorded], dict[str, str]]:
    """Return the cases with the verdicts of now, and what was asked.

    Raises
    ------
    InputError
        If this is no checkout, or the Python given has no megatron-core.
    """
    if not (_TESTS / "oracles" / "verdict").is_dir():
        raise InputError(
            "a live verdict needs a checkout of the project, whose tests hold the "
            "oracle: run it there, or leave --live out"
        )
    versions: dict[str, str] = json.loads(_call(python, "--fingerprint"))
    cases = [dict(one.case) | {"id": at} for at, one in enumerate(found)]
    with tempfile.TemporaryDirectory() as folder:
        asked, said = Path(folder) / "cases.json", Path(folder) / "said.jsonl"
        asked.write_text(json.dumps(cases), encoding="utf-8")
        _call(python, str(asked), str(said))
        lines = map(json.loads, said.read_text(encoding="utf-8").splitlines())
        verdicts = {line["id"]: line for line in lines}
    return [
        replace(
            one,
            stage=verdicts[at]["stage_failed"] or "",
            legal=verdicts[at]["legal"],
            step=None,
        )
        for at, one in enumerate(found)
    ], versions
