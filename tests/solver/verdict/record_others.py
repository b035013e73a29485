"""Write what DeepSpeed and Accelerate said as the file of records.

    python record_others.py DIALECT=CASES.json,OUT.json,PACKAGE=VERSION[,...] ...

CASES as ``write_others.py`` writes them, OUT as ``oracles.verdict.DIALECT`` does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

from shardproof.benchmarks.verdict_others import RECORDS, write_others

_ORACLES = Path(__file__).parents[2] / "oracles" / "verdict"


def digest(dialect: str) -> str:
    """Return the hash of the file that asks a framework."""
    path = _ORACLES / dialect / f"ask_{dialect}.py"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    """Join cases and verdicts by their order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+")
    table = {}
    for part in parser.parse_args().parts:
        dialect, _, words = part.partition("=")
        asked, said, *versions = words.split(",")
        answers = json.loads(Path(said).read_text(encoding="utf-8"))
        cases = json.loads(Path(asked).read_text(encoding="utf-8"))
        rows = [
            [case.pop("kind"), case, answer[0] if answer else ""]
            for case, answer in zip(cases, answers, strict=True)
        ]
        provenance = dict(version.split("=") for version in versions)
        table[dialect] = {
            "asked": {"oracle": digest(dialect)} | provenance,
            "cases": rows,
        }
    write_others(RECORDS, table)
    print(f"{RECORDS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
