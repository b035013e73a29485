"""Every rule is needed, and every condition in it: without one a verdict changes.

For each rule of each dialect its source is compiled with a switch at every condition
(``rule_mutants``). Recorded verdicts of megatron-core, DeepSpeed and Accelerate,
boundaries and cases by hand (``mutation_cases``) are judged by the rule and by each of
its mutants. A mutant is found out by a case in which it says otherwise, the rule says
what the case says, and no other rule refuses: there the verdict changes.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from expert_boundaries import EXPERT
from layout_boundaries import LAYOUTS
from megatron_cases import change
from mutation_dialects import HAND
from mutation_excuses import EQUIVALENT, REDUNDANT
from mutation_megatron import MEGATRON
from mutation_others import OTHERS
from option_boundaries import OPTIONS
from rule_mutants import MODULES, Mutant, Switch, instrumented, outcome

from shardproof.benchmarks.verdict_others import READERS, broken, read_others
from shardproof.benchmarks.verdict_records import read_records
from shardproof.models.dialects.megatron_config import read_megatron
from shardproof.models.layout import Dims
from shardproof.solver.rules import ALL_RULES, DIALECTS, Facts, Structures, rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mutation_cases import Hand

    from shardproof.solver.rules import Rule

Key = tuple[str, str]
CITED = Path(__file__).parent / "data" / "cited_verdicts.json.gz"
BOUNDARIES = LAYOUTS | EXPERT | OPTIONS
RULES: dict[Key, Rule] = {(r.dialect, r.id): r for r in ALL_RULES}


@dataclass(frozen=True)
class Given:
    """A case, whether the rule is said to hold, and whose other rules refuse it."""

    name: str
    holds: bool
    facts: Facts
    point: Mapping[str, int]
    whole: bool
    dialect: str


@dataclass
class Found:
    """What the cases of one rule show."""

    needed: str = ""
    wrong: list[str] = field(default_factory=list)
    alive: dict[tuple[int, int], Mutant] = field(default_factory=dict)
    killed: int = 0


def megatron_facts(case: dict[str, Any]) -> Facts:
    read = read_megatron(
        case["config"],
        case["arch"],
        world=case["world"],
        global_batch=case["global_batch"],
        micro_batch=case["micro_batch"],
        seq_len=case["seq"],
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


def other_facts(dialect: str, case: Mapping[str, Any]) -> Facts:
    read = READERS[dialect](case)
    return Facts(
        dims=Dims.of({name: (code,) for name, code in read.point.items()}),
        sizes_given=read.sizes,
        options=read.options,
    )


@cache
def recorded() -> dict[str, list[tuple[str, bool, Any]]]:
    """Recorded cases by the rule that they were made for, or are cited for."""
    every, found = read_records(), {}
    for i, one in enumerate(every):
        rule = one.kind.removesuffix(" ok")
        held = one.kind.endswith(" ok")
        found.setdefault(rule, []).append((f"record {i}", held, one.case))
    for one in json.loads(gzip.decompress(CITED.read_bytes())):
        told = (f"cited, made for {one['made_for']}", one["holds"], one["case"])
        found.setdefault(one["rule"], []).append(told)
    return found


@cache
def others() -> dict[Key, list[Given]]:
    """Recorded cases of the other frameworks by the rule that they were made for.

    Of those made for none, the ones that one asked rule alone refuses are its own.
    """
    found: dict[Key, list[Given]] = {}
    for dialect, (_, cases) in read_others().items():
        for i, one in enumerate(cases):
            rule = one.kind.removesuffix(" ok")
            if one.kind == "drawn" and one.stage:
                refused = [r.id for r in broken(dialect, one.case)]
                rule = refused[0] if len(refused) == 1 else rule
            facts = other_facts(dialect, one.case)
            case = Given(f"record {i}", not one.stage, facts, {}, True, dialect)
            found.setdefault((dialect, rule), []).append(case)
    return found


@cache
def accepted(dialect: str) -> list[Given]:
    """Every recorded case of a framework that it accepts: all its rules hold there."""
    of_dialect = (v for key, v in others().items() if key[0] == dialect)
    return [case for cases in of_dialect for case in cases if case.holds]


def more(key: Key, found: Found) -> Iterator[Given]:
    """Yield the other legal cases of a framework while there are mutants left."""
    if key in others():
        for case in accepted(key[0]):
            if not found.alive:
                return
            yield case


def given(key: Key) -> Iterator[Given]:
    """Yield the cases of one rule, those first that decide most."""
    dialect, rule = key
    by_hand = MEGATRON.get(rule, []) if dialect == "megatron" else []
    for i, hand in enumerate([*HAND.get(key, []), *OTHERS.get(key, []), *by_hand]):
        yield of_hand(f"by hand {i}: {hand.source}", hand, dialect)
    if dialect != "megatron":
        yield from others().get(key, ())
        return
    if rule in BOUNDARIES:
        base, common, legal, illegal = BOUNDARIES[rule]
        for side, changes in ((True, legal), (False, illegal)):
            case = change(base, **common | changes)
            yield of_case(f"boundary, {side}", side, case)
    for name, held, case in recorded().get(rule, ()):
        yield of_case(name, held, case)


def of_case(name: str, holds: bool, case: dict[str, Any]) -> Given:
    return Given(name, holds, megatron_facts(case), {}, True, "megatron")


def of_hand(name: str, hand: Hand, dialect: str) -> Given:
    if hand.case is not None:
        return of_case(name, hand.holds, hand.case)
    told = hand.dialect or dialect
    return Given(name, hand.holds, hand.facts(), hand.point(), hand.read, told)


@cache
def beside(key: Key, whole: bool, dialect: str) -> tuple[Rule, ...]:
    """The other rules that refuse; those of the planner only where it has a say."""
    if dialect == key[0]:
        dialect = f"{dialect}@{RULES[key].until or DIALECTS[dialect][-1]}"
    every = rules(dialect)
    hard = [r for r in every if r.kind == "hard" and r.id != key[1]]
    return tuple(r for r in hard if not whole or r.checker != "product")


def try_all(rule: Rule, key: Key, switch: Switch) -> Found:
    """Judge every case of a rule by it and by its mutants."""
    found, seen = Found(), set()
    for case in chain(given(key), more(key, found)):
        switch.active, switch.hit = None, set()
        says = outcome(rule, case.facts, case.point)
        if says != int(case.holds):
            found.wrong.append(case.name)
        new = switch.hit - seen - switch.words
        seen |= new
        for mutant in (m for site in new for m in switch.mutants[site]):
            found.alive[mutant.site, mutant.variant] = mutant
        differ = _differing(rule, case, switch, found, says)
        if (differ or not (says or found.needed)) and _alone(key, case):
            found.needed = found.needed or ("" if says else case.name)
            found.killed += len(differ)
            for place in differ:
                del found.alive[place]
    for place in [p for p in found.alive if p[0] in switch.words]:
        del found.alive[place]
    return found


def _differing(
    rule: Rule, case: Given, switch: Switch, found: Found, says: object
) -> list[tuple[int, int]]:
    differ, hit = [], set(switch.hit)
    for place in found.alive:
        if place[0] in hit:
            switch.active = place
            if outcome(rule, case.facts, case.point) != says:
                differ.append(place)
    switch.active = None
    return differ


def _alone(key: Key, case: Given) -> bool:
    others = beside(key, case.whole, case.dialect)
    return all(outcome(r, case.facts, case.point) == 1 for r in others)


@cache
def module_of() -> dict[Key, str]:
    """The module of every rule, shared bodies with the dialect that has its own."""
    found: dict[Key, str] = {}
    for module in MODULES:
        found |= dict.fromkeys(instrumented(module)[1], module)
    return found


@cache
def mutable(module: str) -> tuple[Switch, dict[Key, Rule]]:
    return instrumented(module)


def unexplained(key: Key, found: Found) -> tuple[list[str], list[str]]:
    """Mutants that nobody excuses, and excuses that nobody needs."""
    excuses = EQUIVALENT.get(key, {})
    texts = [mutant.text for mutant in found.alive.values()]
    left = [text for text in texts if not any(part in text for part in excuses)]
    spare = [part for part in excuses if not any(part in text for text in texts)]
    return left, spare


@pytest.mark.parametrize("key", RULES, ids=lambda k: f"{k[0]}:{k[1]}")
def test_without_it_a_verdict_changes(key: Key) -> None:
    module = module_of().get(key)
    if module is None:  # the body of another dialect: its mutants are tried there
        switch, rule = Switch("none"), RULES[key]
    else:
        switch, own = mutable(module)
        rule = own[key]
    found = try_all(rule, key, switch)
    assert not found.wrong, found.wrong
    if key in REDUNDANT:
        assert not found.needed
    else:
        assert found.needed, "no case is refused by this rule alone"
    left, known = unexplained(key, found)
    assert not left, left
    assert not known, f"a case does find out {known}"


def test_every_case_is_of_a_rule() -> None:
    assert set(HAND) | set(OTHERS) | set(EQUIVALENT) <= set(RULES)
    known = {rule for dialect, rule in RULES if dialect == "megatron"}
    assert set(MEGATRON) <= known
