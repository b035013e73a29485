"""Legality against the framework's own verdicts.

A case is one configuration of Megatron with its model, world and batch. The rules
judge it; where the case carries the framework's verdict, the two are compared.
Legal means that megatron-core and its launcher accept the configuration and build
every layer exactly once. Rules of TransformerEngine, of FSDP, of the environment
and of whole training steps are reported without deciding.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import zlib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.dialects.fields import whole
from ..models.dialects.megatron_config import read_megatron
from ..models.errors import InputError
from ..models.layout import Dims
from ..solver.rules import Facts, Structures, rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..solver.rules import Rule

DIALECT = "megatron@0.16"
_MAX_BYTES = 2**30
_MANY = 2**26


def judge(case: Mapping[str, Any]) -> tuple[bool, list[str]]:
    """Judge one configuration.

    Parameters
    ----------
    case
        ``arch``, ``config``, ``world``, ``global_batch``, ``micro_batch`` and
        ``seq``; other entries are ignored.

    Returns
    -------
    tuple of bool and list of str
        Whether core and launcher accept it with every layer built once, and the
        ids of all rules it breaks, those that do not decide included.

    Raises
    ------
    InputError
        If something is missing or not of its kind.
    """
    broken = _broken(_facts(case))
    return not any(r.decides for r in broken), [r.id for r in broken]


def _facts(case: Mapping[str, Any]) -> Facts:
    if not isinstance(case, dict):
        raise InputError(f"a case is a mapping, got {str(case)[:60]!r}")
    for name in ("arch", "config"):
        if not isinstance(case.get(name), dict):
            raise InputError(
                f"a case has a mapping {name}, got {str(case.get(name))[:60]!r}"
            )
    read = read_megatron(
        case["config"],
        case["arch"],
        world=whole(case, "world"),
        global_batch=whole(case, "global_batch", least=-_MANY),
        micro_batch=whole(case, "micro_batch", least=-_MANY),
        seq_len=whole(case, "seq"),
    )
    return Facts(
        dims=Dims.of({name: (code,) for name, code in read.point.items()}),
        sizes_given=read.sizes,
        options=read.options,
        structures=Structures(
            layout=read.layout,
            cp_sizes=read.cp_sizes,
            cp_styles=read.cp_styles,
            order=read.order,
        ),
    )


@cache
def _judging() -> tuple[Rule, ...]:
    hard = [r for r in rules(DIALECT) if r.kind == "hard"]
    return tuple(r for r in hard if r.checker != "product")


def _broken(facts: Facts) -> list[Rule]:
    found = []
    for rule in _judging():
        holds = rule.body(facts).constant
        assert holds is not None, f"rule {rule.id} is not decided by a whole case"
        if not holds:
            found.append(rule)
    return found


def read_cases(path: Path) -> list[Mapping[str, Any]]:
    """Read a JSON list of cases, gzipped or not.

    Raises
    ------
    InputError
        If the file is not there, too large, or no list of mappings.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if len(text) > _MAX_BYTES:
        raise InputError(f"a file of cases has at most {_MAX_BYTES:,} bytes, {path}")
    try:
        cases = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {str(error)[:120]}") from None
    if not isinstance(cases, list):
        raise InputError(
            f"{path} holds a JSON list of cases, got {type(cases).__name__}"
        )
    return cases


def _judge_all(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    judged = []
    for number, case in enumerate(cases):
        try:
            legal, broken = judge(case)
        except InputError as error:
            raise InputError(f"case {number}: {error}") from None
        judged.append({"id": case.get("id", number), "legal": legal, "rules": broken})
    return judged


def agreement(
    cases: Sequence[Mapping[str, Any]], judged: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[int, int]]:
    """Return for each kind of case how many agree, and how many there are."""
    total: Counter[str] = Counter()
    same: Counter[str] = Counter()
    for case, verdict in zip(cases, judged, strict=True):
        if isinstance(case.get("legal"), bool):
            kind = str(case.get("kind", "(no kind)"))
            total[kind] += 1
            same[kind] += case["legal"] == verdict["legal"]
    return {kind: (same[kind], total[kind]) for kind in sorted(total)}


def _print_table(counts: Mapping[str, tuple[int, int]], judged: int) -> None:
    width = max((len(kind) for kind in counts), default=8)
    for kind, (same, total) in counts.items():
        print(f"{kind:<{width}}  {same:>6} of {total:>6}")
    same, total = (sum(column) for column in zip((0, 0), *counts.values(), strict=True))
    share = f"{same / total:.4%}" if total else "no verdicts to compare"
    print(f"{'all':<{width}}  {same:>6} of {total:>6}  {share}; {judged} cases judged")


def main(argv: Sequence[str] | None = None) -> int:
    """Judge a file of cases; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="shardproof bench legality", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, metavar="FILE.json[.gz]")
    parser.add_argument("--json", action="store_true", help="print every judgement")
    parser.add_argument(
        "--gate", action="store_true", help="exit 1 unless every verdict agrees"
    )
    asked = parser.parse_args(argv)
    try:
        cases = read_cases(asked.data)
        judged = _judge_all(cases)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    counts = agreement(cases, judged)
    if asked.json:
        print(json.dumps({"cases": judged}))
    else:
        _print_table(counts, len(judged))
    agreed = all(same == total for same, total in counts.values())
    return 1 if asked.gate and not (agreed and counts) else 0


if __name__ == "__main__":
    raise SystemExit(main())
