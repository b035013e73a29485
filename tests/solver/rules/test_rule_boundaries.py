"""Every rule decides at its boundary, and alone."""

import pytest
from expert_boundaries import EXPERT
from layout_boundaries import LAYOUTS
from megatron_cases import DENSE, SPARSE, change
from option_boundaries import OPTIONS

from shardproof.benchmarks.legality import judge
from shardproof.solver.rules import rules

ENTRIES = LAYOUTS | EXPERT | OPTIONS
RULES = {rule.id: rule for rule in rules("megatron@0.16")}
#: Judged over a problem and its device, not over a configuration of Megatron.
ELSEWHERE = {"fp8-device"}


def test_the_bases_break_no_rule() -> None:
    assert judge(DENSE) == (True, [])
    assert judge(SPARSE) == (True, [])


def test_every_hard_rule_of_the_framework_has_its_boundary() -> None:
    asked = {r.id for r in RULES.values() if r.kind == "hard"}
    own = {r.id for r in RULES.values() if r.checker == "product"}
    assert set(ENTRIES) == asked - own - ELSEWHERE


@pytest.mark.parametrize("rule_id", ENTRIES)
def test_just_legal(rule_id: str) -> None:
    base, common, legal, _ = ENTRIES[rule_id]
    assert judge(change(base, **common | legal)) == (True, [])


@pytest.mark.parametrize("rule_id", ENTRIES)
def test_just_illegal_by_this_rule_alone(rule_id: str) -> None:
    base, common, _, illegal = ENTRIES[rule_id]
    case = change(base, **common | illegal)
    assert judge(case) == (not RULES[rule_id].decides, [rule_id])
