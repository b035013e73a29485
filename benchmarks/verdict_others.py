"""Recorded verdicts of DeepSpeed and Accelerate, beside the rules' own.

The file holds for each dialect what was asked and what it said:
``tests/solver/verdict/record_others.py`` writes it.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.dialects.accelerate_config import read_accelerate
from ..models.dialects.deepspeed_config import read_deepspeed
from ..models.errors import InputError
from ..models.layout import Dims
from ..solver.rules import Facts, rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..models.dialects.configuration import Configuration
    from ..solver.rules import Rule

RECORDS = Path(__file__).with_name("verdict_others.json.gz")
READERS: Mapping[str, Callable[[Mapping[str, Any]], Configuration]] = {
    "deepspeed": read_deepspeed,
    "accelerate": read_accelerate,
}
#: Configurations that each family of a rule has at least.
LEAST = 50


@dataclass(frozen=True, kw_only=True)
class Other:
    """One configuration of another framework and what it said.

    Attributes
    ----------
    kind
        The rule that the case was made for, with `` ok`` behind it if it lies on the
        legal side; ``drawn`` if it was made for none.
    case
        The case, as its reader takes it.
    stage
        The stage that refused, empty if none did.
    """

    kind: str
    case: Mapping[str, Any]
    stage: str


def asked_rules(dialect: str) -> list[Rule]:
    """Return the rules that the framework's own code is asked about."""
    return [r for r in rules(dialect) if r.kind == "hard" and r.checker == dialect]


def broken(dialect: str, case: Mapping[str, Any]) -> list[Rule]:
    """Return the rules that a case breaks, of those that are asked.

    Raises
    ------
    InputError
        If something is missing in the case, or not of its kind.
    """
    read = READERS[dialect](case)
    facts = Facts(
        dims=Dims.of({name: (code,) for name, code in read.point.items()}),
        sizes_given=read.sizes,
        options=read.options,
    )
    return [rule for rule in asked_rules(dialect) if not _holds(rule, facts)]


def _holds(rule: Rule, facts: Facts) -> bool:
    holds = rule.body(facts).constant
    assert holds is not None, f"rule {rule.id} is not decided by a whole case"
    return bool(holds)


def write_others(path: Path, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write, for each dialect, what was asked (``asked``) and its ``cases``."""
    text = json.dumps(found, separators=(",", ":"), sort_keys=True).encode()
    path.write_bytes(gzip.compress(text, 9, mtime=0))


def read_others(path: Path = RECORDS) -> dict[str, tuple[dict[str, str], list[Other]]]:
    """Return for each dialect what was asked, and the verdicts.

    Raises
    ------
    InputError
        If the file is not there or holds no such records.
    """
    try:
        table = json.loads(gzip.decompress(path.read_bytes()))
        return {
            dialect: (
                dict(part["asked"]),
                [
                    Other(kind=kind, case=case, stage=stage)
                    for kind, case, stage in part["cases"]
                ],
            )
            for dialect, part in table.items()
        }
    except (
        OSError,
        EOFError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ) as error:
        raise InputError(f"{path} holds no recorded verdicts: {error}") from None


def figures(dialect: str, found: Sequence[Other]) -> dict[str, Any]:
    """Return agreement by rule as plain values, for ``bench verdict``."""
    count: dict[str, Counter[str]] = {}
    for one in found:
        ids = [rule.id for rule in broken(dialect, one.case)]
        row = count.setdefault(one.kind, Counter())
        row["of"] += 1
        row["agree"] += bool(ids) == bool(one.stage)
        row["alone"] += [one.kind] == ids and bool(one.stage)
        row["legal"] += not one.stage
    none: Counter[str] = Counter()
    sides = {
        rule.id: (count.get(rule.id, none), count.get(f"{rule.id} ok", none))
        for rule in asked_rules(dialect)
    }
    drawn = count.get("drawn", none)
    return {
        "rules": [
            {
                "id": rule.id,
                "where": rule.where,
                "illegal": _plain(sides[rule.id][0]),
                "legal": _plain(sides[rule.id][1]),
            }
            for rule in asked_rules(dialect)
        ],
        "drawn": _plain(drawn) | {"legal": drawn["legal"]},
        "short": [
            name
            for name, (illegal, legal) in sides.items()
            if illegal["alone"] < LEAST or legal["of"] < LEAST
        ],
        "all": {
            "agree": sum(row["agree"] for row in count.values()),
            "of": sum(row["of"] for row in count.values()),
        },
        "not_machine_checked": [
            {"id": r.id, "checker": r.checker, "kind": r.kind, "source": r.source}
            for r in rules(dialect)
            if r not in asked_rules(dialect)
        ],
    }


def _plain(row: Mapping[str, int]) -> dict[str, int]:
    return {name: row.get(name, 0) for name in ("agree", "of", "alone")}
