"""The frameworks' own verdict: agreement of the rules with megatron-core.

Replays recorded verdicts by rule and by stage: for each rule configurations that are
illegal by it alone, and legal ones beside them; and configurations drawn over all
axes. DeepSpeed and Accelerate follow. ``--live`` asks megatron-core again.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.errors import InputError
from ..solver.rules import rules
from .legality import DIALECT, judge
from .verdict_others import figures as other_figures
from .verdict_others import read_others
from .verdict_records import RECORDS, provenance, read_records
from .verdict_text import print_other, print_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..solver.rules import Rule
    from .verdict_records import Recorded

#: Where a rule says that the framework refuses, by the stage that was seen to.
STAGES: Mapping[str, tuple[str, ...]] = {
    "config": ("config", "groups"),
    "groups": ("groups",),
    "micro-batches": ("micro-batches", "groups"),
    "optimizer": ("config",),
    "layers": ("build", "config", "groups"),
    "spec": ("build",),
    "dense layer": ("build",),
    "sparse layer": ("build",),
    "embedding": ("build",),
    "forward": ("first forward",),
    "experts' forward": ("first forward",),
    "schedule": ("schedule",),
    "launcher": ("launcher only", "micro-batches", "groups", "build"),
}


#: Configurations that each family of a rule has at least.
LEAST = 50


@dataclass(frozen=True)
class Count:
    """How many verdicts agree, of how many; ``alone`` broke the one rule only."""

    agree: int = 0
    of: int = 0
    alone: int = 0


@dataclass(frozen=True)
class Judged:
    """A recorded verdict beside the rules' own."""

    recorded: Recorded
    legal: bool
    broken: tuple[Rule, ...]

    @property
    def agrees(self) -> bool:
        """Whether both say the same, of a training step too where one was run."""
        recorded = self.recorded
        if recorded.step is None:
            return self.legal == recorded.legal
        fails = any(in_step(rule) for rule in self.broken)
        return self.legal == recorded.legal and recorded.step != fails

    @property
    def alone(self) -> bool:
        """Whether one rule refuses, and it is the one that the case was made for."""
        counted = [r for r in self.broken if r.decides]
        if self.recorded.step is not None:
            counted += [r for r in self.broken if in_step(r)]
        return [r.id for r in counted] == [self.recorded.kind]


def in_step(rule: Rule) -> bool:
    """Whether a rule shows in a training step only, and there for certain."""
    return rule.checker == "step" and rule.kind == "hard" and rule.where != "never"


def has_families(rule: Rule) -> bool:
    """Whether the framework is asked, or the launcher's check as restated."""
    return rule.machine_checked or rule.decides


def judge_all(found: Iterable[Recorded]) -> list[Judged]:
    """Judge recorded cases by the rules."""
    known = {rule.id: rule for rule in rules(DIALECT)}
    judged = []
    for recorded in found:
        legal, broken = judge(recorded.case)
        judged.append(Judged(recorded, legal, tuple(known[name] for name in broken)))
    return judged


def _count(judged: Sequence[Judged]) -> Count:
    agree = sum(j.agrees for j in judged)
    return Count(agree, len(judged), sum(j.alone for j in judged))


def by_rule(judged: Sequence[Judged]) -> dict[str, tuple[Count, Count]]:
    """Count the illegal and the legal family of every rule that is asked."""
    families: dict[str, list[Judged]] = {}
    for one in judged:
        families.setdefault(one.recorded.kind, []).append(one)
    return {
        rule.id: (
            _count(families.get(rule.id, [])),
            _count(families.get(f"{rule.id} ok", [])),
        )
        for rule in rules(DIALECT)
        if has_families(rule)
    }


def by_stage(judged: Sequence[Judged]) -> dict[str, Count]:
    """Count, by the stage that refused, where a rule of that stage is broken too."""
    total: Counter[str] = Counter()
    same: Counter[str] = Counter()
    for one in judged:
        stage = one.recorded.stage
        if stage:
            total[stage] += 1
            places = {rule.where for rule in one.broken if rule.decides}
            same[stage] += bool(places & set(STAGES[stage]))
    return {stage: Count(same[stage], total[stage]) for stage in STAGES}


def not_by_machine() -> list[Rule]:
    """Return the rules that no framework's code is asked about."""
    return [rule for rule in rules(DIALECT) if not rule.machine_checked]


def unexplained() -> list[str]:
    """Return the rules that no machine is asked about and that do not say why."""
    return [rule.id for rule in not_by_machine() if not rule.out_of_reach]


def report(judged: Sequence[Judged], asked: Mapping[str, str]) -> dict[str, Any]:
    """Return every figure as plain values."""
    drawn = [j for j in judged if j.recorded.kind == "drawn"]
    known = {rule.id: rule for rule in rules(DIALECT)}
    return {
        "asked": dict(asked),
        "rules": [
            {
                "id": name,
                "where": known[name].where,
                "checker": known[name].checker,
                "illegal": asdict(illegal),
                "legal": asdict(legal),
            }
            for name, (illegal, legal) in by_rule(judged).items()
        ],
        "stages": {name: asdict(count) for name, count in by_stage(judged).items()},
        "drawn": asdict(_count(drawn))
        | {"legal": sum(j.recorded.legal for j in drawn)},
        "short": [
            name
            for name, counts in by_rule(judged).items()
            if counts[0].alone < LEAST or counts[1].of < LEAST
        ],
        "steps": sum(j.recorded.step is not None for j in judged),
        "all": asdict(_count(judged)),
        "unexplained": unexplained(),
        "not_machine_checked": [
            {
                "id": r.id,
                "checker": r.checker,
                "kind": r.kind,
                "where": r.where,
                "restated": has_families(r),
                "source": r.source,
            }
            for r in not_by_machine()
        ],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print agreement by rule and by stage; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="shardproof bench verdict", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("--json", action="store_true", help="print every figure as JSON")
    add("--gate", action="store_true", help="exit 1 unless every verdict agrees")
    add("--sample", type=int, metavar="N", help="every Nth recorded case only")
    add("--seed", default="0", help="the sample's first case, by any text")
    add("--live", action="store_true", help="ask megatron-core again (a checkout)")
    add("--python", default=sys.executable, help="the Python that has megatron-core")
    add("--data", type=Path, default=RECORDS, help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    try:
        if asked.sample is not None and asked.sample < 1:
            raise InputError(f"--sample is at least 1, got {asked.sample}")
        step = asked.sample or 1
        start = zlib.crc32(asked.seed.encode()) % step
        found = read_records(asked.data)[start::step]
        versions, others = provenance(asked.data), {}
        if asked.live:
            from .verdict_live import ask_again

            found, versions = ask_again(found, asked.python)
        elif asked.data == RECORDS:
            others = {
                dialect: {"asked": told} | other_figures(dialect, cases[start::step])
                for dialect, (told, cases) in read_others().items()
            }
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    figures = report(judge_all(found), versions) | {"others": others}
    if asked.json:
        print(json.dumps(figures))
    else:
        print_report(figures)
        for dialect, part in others.items():
            print_other(dialect, part)
    parts = [figures, *others.values()]
    agreed = all(part["all"]["agree"] == part["all"]["of"] > 0 for part in parts)
    if not asked.sample:
        agreed = agreed and not any(part["short"] for part in parts)
    return 1 if asked.gate and not (agreed and not figures["unexplained"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
