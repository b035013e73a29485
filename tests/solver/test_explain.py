"""Explanations: every conflict and correction is minimal, found by re-solving."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from strategies import plain_problem

from shardproof.models.expr import values
from shardproof.models.layout import DECIDED
from shardproof.models.problem import Problem
from shardproof.solver.domains import Domains, bind
from shardproof.solver.explain import MEMORY, explain
from shardproof.solver.masks import hitting_sets, minimal
from shardproof.solver.peaks import Peaks
from shardproof.solver.space import Space


def broken_sets(domains: Domains) -> dict[frozenset[str], int]:
    """Loop over all raw points; for each set of broken rules the least lacking."""
    problem, found = domains.problem, {}
    points = []
    for codes in product(*(domains.values[n] for n in DECIDED)):
        point = dict(zip(DECIDED, codes, strict=True))
        world = problem.cluster.world_size
        point["dp"] = max(world // (point["tp"] * point["pp"] * point["cp"]), 1)
        point["edp"] = max(world // (point["etp"] * point["ep"] * point["pp"]), 1)
        batch = problem.training.global_batch
        point["m"] = max(batch // (point["mbs"] * point["dp"]), 1)
        points.append(point)
    whole = [p for p in points if multiplies(p, problem)]
    points = whole or points
    columns = {n: np.array([p[n] for p in points]) for n in points[0]}
    memory = Peaks(domains)
    lacking = memory.of_columns(columns) - memory.limit
    bodies = [body for _, body in domains.rules]
    for point, missing in zip(points, lacking.tolist(), strict=True):
        truth = values(bodies, point)
        broken = {r.id for (r, _), t in zip(domains.rules, truth, strict=True) if not t}
        if missing > 0:
            broken.add(MEMORY)
        key, least = frozenset(broken), max(missing, 0)
        found[key] = min(found.get(key, least), least)
    return found


def multiplies(p: dict[str, int], problem: Problem) -> bool:
    """Whether the degrees multiply to the devices and to the batch."""
    world = problem.cluster.world_size
    return (
        p["tp"] * p["pp"] * p["cp"] * p["dp"] == world
        and p["etp"] * p["ep"] * p["pp"] * p["edp"] == world
        and p["mbs"] * p["dp"] * p["m"] == problem.training.global_batch
    )


def feasible_without(sets: Iterable[frozenset[str]], dropped: set[str]) -> bool:
    return any(s <= dropped for s in sets)


CASES = [
    {"hbm_bytes": 2**27},
    {"hbm_bytes": 2**28, "pins": {"tp": (1,)}},
    {"pins": {"tp": (4,), "sp": (0,), "vpp": (2,), "pp": (1,)}},
    {"pins": {"tp": (4,), "pp": (4,)}},
    {"pins": {"split": (1,)}},
    {"hbm_bytes": 2**29, "pins": {"pp": (1,), "vpp": (2,)}},
]


def infeasible(case: dict[str, object]) -> Domains:
    options = dict(case)
    pins = options.pop("pins", {})
    problem, space = plain_problem(**options)  # type: ignore[arg-type]
    return bind(replace(problem, pins=pins), space)


@pytest.mark.parametrize("case", CASES)
def test_explanations_are_all_and_only_the_minimal_ones(
    case: dict[str, object],
) -> None:
    domains = infeasible(case)
    sets = broken_sets(domains)
    assert not feasible_without(sets, set())
    answer = explain(domains)
    smallest = {s for s in sets if not any(t < s for t in sets)}
    assert {frozenset(c.rules) for c in answer.corrections} == smallest
    for correction in answer.corrections:
        assert correction.missing_bytes == sets[frozenset(correction.rules)]
    everything = {name for s in sets for name in s}
    for conflict in answer.conflicts:
        # Held together the rules exclude all; without any one of them they do not.
        assert not feasible_without(sets, everything - set(conflict))
        for name in conflict:
            assert feasible_without(sets, (everything - set(conflict)) | {name})


@pytest.mark.parametrize("case", CASES)
def test_no_conflict_is_overlooked(case: dict[str, object]) -> None:
    domains = infeasible(case)
    sets = broken_sets(domains)
    answer = {frozenset(c) for c in explain(domains).conflicts}
    everything = sorted({name for s in sets for name in s})
    for size in (1, 2):
        for rules in combinations(everything, size):
            kept = set(everything) - set(rules)
            if not feasible_without(sets, kept):
                assert any(c <= set(rules) for c in answer)


def test_a_witness_breaks_exactly_its_correction() -> None:
    domains = infeasible(CASES[2])
    for correction in explain(domains).corrections:
        point = correction.witness.point()
        truth = values([b for _, b in domains.rules], point)
        broken = [r.id for (r, _), t in zip(domains.rules, truth, strict=True) if not t]
        assert set(broken) == set(correction.rules) - {MEMORY}


def test_clashes_speak_in_sentences() -> None:
    answer = explain(infeasible(CASES[0]))
    assert answer.missing_bytes is not None
    assert [c.rule for c in answer.clashes] == [MEMORY]
    assert f"{answer.missing_bytes:,} too many" in answer.clashes[0].sentence


def test_hitting_sets_meet_every_mask() -> None:
    masks = [0b0111, 0b1001, 0b1010]
    found = hitting_sets(minimal(masks))
    every = [
        h
        for h in range(16)
        if all(h & m for m in masks)
        and not any(g & h == g != h and all(g & m for m in masks) for g in range(16))
    ]
    assert sorted(found) == sorted(every)


def test_a_feasible_space_has_an_empty_correction() -> None:
    problem, space = plain_problem()
    assert isinstance(problem, Problem)
    assert isinstance(space, Space)
    answer = explain(bind(problem, space))
    assert answer.corrections[0].rules == ()
    assert answer.conflicts == ()
