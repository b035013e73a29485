"""Ask megatron-core about a file of cases.

    PYTHONPATH=tests python -m oracles.verdict CASES.json[.gz] OUT.jsonl

Each line of OUT is a verdict with the case's id. Cases whose id OUT holds already
are passed over, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.metadata
import json
import logging
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def digest() -> str:
    """Return the hash of the files that make a verdict of core and launcher."""
    digest = hashlib.sha256()
    paths = Path(__file__).parent.glob("*.py")
    for path in sorted(p for p in paths if p.name not in ("__main__.py", "step.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def fingerprint() -> dict[str, str]:
    """Return what was asked: the hash of this oracle and the versions installed."""
    found = {"oracle": digest()}
    for name in ("megatron-core", "torch"):
        found[name] = importlib.metadata.version(name)
    return found


def _read(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    cases: list[dict[str, Any]] = json.loads(raw)
    return cases


def _done(path: Path) -> set[Any]:
    if not path.exists():
        return set()
    lines = path.read_text(encoding="utf-8").splitlines()
    return {json.loads(line)["id"] for line in lines}


def _ask_all(cases: Iterable[Mapping[str, Any]], out: Path, with_step: bool) -> int:
    from . import ask, step

    ask.prepare()
    step.install()
    number = 0
    with out.open("a", encoding="utf-8") as file:
        for case in cases:
            verdict = {"id": case["id"]} | ask.ask(case)
            if with_step and verdict["accepted"]:
                verdict["step"] = step.refusal(case, verdict["layers_per_stage"])
            file.write(json.dumps(verdict) + "\n")
            file.flush()
            number += 1
    return number


def main() -> int:
    """Ask, and say how long it took."""
    parser = argparse.ArgumentParser(prog="oracles.verdict", description=__doc__)
    parser.add_argument("cases", type=Path, nargs="?")
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--fingerprint", action="store_true")
    parser.add_argument(
        "--step", action="store_true", help="run a step of what is accepted, too"
    )
    parser.add_argument("--part", default="0/1", metavar="I/N", help="every Nth case")
    asked = parser.parse_args()
    if asked.fingerprint:
        print(json.dumps(fingerprint()))
        return 0
    if asked.cases is None or asked.out is None:
        parser.error("CASES and OUT are needed")
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    part, parts = (int(n) for n in asked.part.split("/"))
    done = _done(asked.out)
    cases = [c for c in _read(asked.cases)[part::parts] if c["id"] not in done]
    begun = time.process_time()
    number = _ask_all(cases, asked.out, asked.step)
    took = time.process_time() - begun
    print(f"{number} cases asked in {took:.0f} s of CPU", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
