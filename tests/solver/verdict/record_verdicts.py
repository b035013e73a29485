"""Write what the oracle said as the file of records.

    python record_verdicts.py CASES.json OUT.jsonl [STEP.jsonl]

CASES as ``write_verdict_cases.py`` writes them; OUT and STEP as ``oracles.verdict``
does, the latter with ``--step``. Needs megatron-core, to name what was asked.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from oracles.verdict.__main__ import fingerprint
from verdict_models import ARCHITECTURES, PLAIN

from shardproof.benchmarks.verdict_records import RECORDS, Recorded, write_records


def _lines(path: Path) -> dict[str, dict[str, Any]]:
    found = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {verdict["id"]: verdict for verdict in found}


def main() -> None:
    """Join cases and verdicts by their ids."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("step", type=Path, nargs="?")
    asked = parser.parse_args()
    core = _lines(asked.out)
    steps = _lines(asked.step) if asked.step else {}
    found = []
    for case in json.loads(asked.cases.read_text(encoding="utf-8")):
        said, step = core[case["id"]], steps.get(case["id"], {})
        found.append(
            Recorded(
                kind=case["kind"],
                case=case,
                stage=said["stage_failed"] or "",
                legal=said["legal"],
                step=step["step"] is None if "step" in step else None,
            )
        )
    write_records(
        RECORDS,
        found,
        plain=PLAIN,
        architectures=ARCHITECTURES,
        provenance=fingerprint(),
    )
    print(f"{len(found)} verdicts, {RECORDS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
