"""Explanations: every conflict and correction is minimal, found by re-solving."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from strategies import plain_problem

from shardproof.models.errors import InputError
from shardproof.models.expr import Axis, axis, equals, values
from shardproof.models.layout import AXES, OVERLAPS, PRECISIONS
from shardproof.models.problem import Problem
from shardproof.solver.domains import Domains, bind
from shardproof.solver.explain import MEMORY, explain
from shardproof.solver.masks import classes, hitting_sets, minimal
from shardproof.solver.peaks import Peaks
from shardproof.solver.space import Space


def broken_sets(domains: Domains) -> dict[frozenset[str], int]:
    """Loop over all raw points; for each set of broken constraints the least lacking.

    Pins are constraints. Points whose degrees do not multiply are left out, but for
    those that keep every pin where no other one does.
    """
    problem, space = domains.problem, domains.space
    wide = bind(replace(problem, pins={}), space)
    points = []
    for codes in product(*(wide.values[n] for n in AXES)):
        point = dict(zip(AXES, codes, strict=True))
        world = problem.cluster.world_size
        point["dp"] = max(world // (point["tp"] * point["pp"] * point["cp"]), 1)
        point["edp"] = max(world // (point["etp"] * point["ep"] * point["pp"]), 1)
        batch = problem.training.global_batch
        point["m"] = max(batch // (point["mbs"] * point["dp"]), 1)
        points.append(point)
    inside = [p for p in points if not left(p, problem)]
    whole = [p for p in points if multiplies(p, problem)]
    if not any(multiplies(p, problem) for p in inside):
        whole = [*whole, *inside]
    columns = {n: np.array([p[n] for p in whole]) for n in whole[0]}
    memory = Peaks(wide)
    lacking = memory.of_columns(columns) - memory.limit
    bodies = [body for _, body in wide.rules]
    found: dict[frozenset[str], int] = {}
    for point, missing in zip(whole, lacking.tolist(), strict=True):
        truth = values(bodies, point)
        broken = {r.id for (r, _), t in zip(wide.rules, truth, strict=True) if not t}
        if missing > 0:
            broken.add(MEMORY)
        key, least = frozenset(broken | left(point, problem)), max(missing, 0)
        found[key] = min(found.get(key, least), least)
    return found


def left(point: dict[str, int], problem: Problem) -> set[str]:
    """The pins that a point does not keep."""
    return {f"pin:{n}" for n, codes in problem.pins.items() if point[n] not in codes}


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
    wide = bind(replace(domains.problem, pins={}), domains.space)
    for correction in explain(domains).corrections:
        point = correction.witness.point()
        truth = values([b for _, b in wide.rules], point)
        broken = [r.id for (r, _), t in zip(wide.rules, truth, strict=True) if not t]
        lifted = left(point, domains.problem)
        assert set(broken) | lifted == set(correction.rules) - {MEMORY}


def test_a_pin_is_a_constraint_that_can_be_given_up() -> None:
    """Two chunks on one rank: free vpp or pp, or drop the rules."""
    answer = explain(infeasible(CASES[2]))
    ways = {c.rules for c in answer.corrections}
    assert ("pin:vpp",) in ways
    assert all("pin:vpp" not in rules for rules in ways - {("pin:vpp",)})
    (clash,) = [c for c in answer.clashes if c.rule == "pin:vpp"]
    assert clash.sentence == "vpp=2 is pinned; the space also has 1"


def test_clashes_speak_in_sentences() -> None:
    answer = explain(infeasible(CASES[0]))
    assert answer.missing_bytes is not None
    assert [c.rule for c in answer.clashes] == [MEMORY]
    assert f"{answer.missing_bytes:,} too many" in answer.clashes[0].sentence


def test_a_mask_holds_any_number_of_rules() -> None:
    """Two hundred constraints, of rows, of inner choices, and of both."""
    a, b = axis(Axis("pp", tuple(range(8)))), axis(Axis("recompute", (0, 1, 2)))
    bodies = []
    for i in range(200):
        bodies.append(
            [equals(a, i % 8), equals(b, i % 3), equals(a + b, i % 10)][i % 3]
        )
    rows, inner = {"pp": np.arange(8)}, {"recompute": np.arange(3)}
    labels, masks = classes(bodies, rows, inner)
    assert len(set(masks)) == len(masks) == labels.max() + 1
    for pp, recompute in product(range(8), range(3)):
        truth = values(bodies, {"pp": pp, "recompute": recompute})
        expected = sum(1 << i for i, holds in enumerate(truth) if not holds)
        assert masks[labels[pp, recompute]] == expected


def test_optional_axes_take_part() -> None:
    """FP8 is pinned on a device that has none; any other precision will do."""
    problem, space = plain_problem()
    codes = tuple(PRECISIONS.index(n) for n in ("bf16", "fp8-tensor"))
    wide = space.restrict("precision", codes)
    pinned = replace(problem, pins={"precision": codes[1:], "tp": (1,), "cp": (1,)})
    answer = explain(bind(pinned, wide))
    assert ("pin:precision",) in {c.rules for c in answer.corrections}
    assert any({"pin:precision", "fp8-device"} == set(c) for c in answer.conflicts)


def test_too_many_raw_points_are_refused_in_one_sentence() -> None:
    problem, space = plain_problem()
    for name in OVERLAPS:
        space = space.restrict(name, (0, 1))
    for name, number in (("cp_style", 5), ("cross_entropy", 3), ("offload", 4)):
        space = space.restrict(name, tuple(range(number)))
    with pytest.raises(InputError, match="narrow some axes with --axis or --pin"):
        explain(bind(problem, space.restrict("recompute", tuple(range(128)))))


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
