"""Write the cases to ask, as a JSON list: ``python write_verdict_cases.py OUT``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from verdict_cases import drawn_cases, family_cases


def main() -> None:
    """Write families and draws, shuffled by nothing: the order is that of the rules."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", type=int, default=52, metavar="N")
    parser.add_argument("--drawn", type=int, default=5200, metavar="N")
    asked = parser.parse_args()
    cases = [
        *family_cases(asked.seed, asked.families),
        *drawn_cases(asked.seed, asked.drawn),
    ]
    asked.out.write_text(json.dumps(cases), encoding="utf-8")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
