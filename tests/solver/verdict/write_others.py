"""Write the cases to ask, as a JSON list: ``python write_others.py DIALECT OUT``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from other_cases import DRAWS, other_cases


def main() -> None:
    """Write families, in the order of the rules, and draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dialect", choices=sorted(DRAWS))
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", type=int, default=52, metavar="N")
    parser.add_argument("--drawn", type=int, default=1100, metavar="N")
    asked = parser.parse_args()
    found = other_cases(asked.dialect, asked.seed, asked.families, asked.drawn)
    cases = list(found)
    asked.out.write_text(json.dumps(cases), encoding="utf-8")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
