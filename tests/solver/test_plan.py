"""Plans: the fastest of a complete set, proven against scoring everything."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from strategies import plain_problem, problems

from shardproof.models.errors import InputError
from shardproof.models.problem import Problem
from shardproof.solver.answer import Answer, Infeasible
from shardproof.solver.feasible import NAMES, enumerate_feasible
from shardproof.solver.plan import plan
from shardproof.solver.scoring import Scores
from shardproof.solver.single import broken_rules, complete_layout, evaluate
from shardproof.solver.space import Space


@given(problems())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_answer_is_the_best_of_all(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    found = plan(problem, space, top=3)
    everything = enumerate_feasible(problem, space)
    if isinstance(found, Infeasible):
        assert everything.count == 0
        assert found.conflicts
        return
    assert found.certificate.feasible_count == everything.count
    assert found.certificate.legal_count == everything.legal_count
    scored = Scores(problem).simulated(list(everything.layouts()))
    fastest = sorted(s.step_time_s for s in scored)[:3]
    assert [c.projection.step_time_s for c in found.answers] == fastest
    assert all(c.layout in everything for c in found.answers)


@given(problems())
@settings(max_examples=25, deadline=None)
def test_a_bound_is_never_above_the_simulation(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    found = enumerate_feasible(problem, space, rules_only=True)
    scores = Scores(problem)
    drawn_layouts = found.sample(100)
    columns = {n: np.array([getattr(x, n) for x in drawn_layouts]) for n in NAMES}
    bounds = scores.bounds(columns)
    simulated = scores.simulated(drawn_layouts)
    for bound, exact in zip(bounds.tolist(), simulated, strict=True):
        assert bound <= exact.step_time_s
        low, high = exact.band
        assert low < exact.step_time_s < high


def test_what_is_planned_breaks_no_rule_and_evaluates_alike() -> None:
    problem, space = plain_problem()
    found = plan(problem, space, top=5)
    assert isinstance(found, Answer)
    for choice in found.answers:
        assert broken_rules(problem, choice.layout) == ()
        again = evaluate(problem, choice.layout)
        assert again.memory == choice.memory
        assert again.projection == choice.projection


def test_pins_only_narrow() -> None:
    problem, space = plain_problem()
    free = plan(problem, space, top=1)
    pinned = plan(replace(problem, pins={"tp": (4,)}), space, top=1)
    assert isinstance(free, Answer)
    assert isinstance(pinned, Answer)
    assert pinned.answers[0].layout.tp == 4
    assert pinned.certificate.bound >= free.certificate.bound
    assert pinned.certificate.feasible_count < free.certificate.feasible_count


def test_progress_ends_where_it_says() -> None:
    steps: list[tuple[str, int, int]] = []
    plan(*plain_problem(), progress=lambda *step: steps.append(step))
    assert steps
    assert all(done <= total for _, done, total in steps)


def test_a_layout_says_every_rule_it_breaks() -> None:
    problem, _ = plain_problem(hbm_bytes=2**20)
    layout = replace(
        complete_layout(problem, {"tp": 8, "mbs": 4}), sp=0, ep=2, edp=4, recompute=4
    )
    broken = {c.rule for c in broken_rules(problem, layout)}
    # Four key/value heads are replicated over eight ranks: no rule is broken there.
    assert broken == {
        "ep-moe",
        "recompute-selective",
        "recompute-present",
        "memory",
    }
    sentences = [c.sentence for c in broken_rules(problem, layout)]
    assert all("{" not in s for s in sentences)


def test_an_incomplete_layout_gets_the_defaults() -> None:
    problem, _ = plain_problem()
    layout = complete_layout(problem, {"tp": 2, "pp": 2})
    assert (layout.dp, layout.m, layout.sp, layout.sharding) == (2, 16, 1, 1)
    assert broken_rules(problem, layout) == ()


@pytest.mark.parametrize(
    ("partial", "message"),
    [
        ({"tp": 3}, "the number of devices must be a multiple of tp"),
        ({"mbs": 5}, "the global batch must be a multiple of mbs"),
    ],
)
def test_a_layout_that_does_not_multiply_is_refused(
    partial: dict[str, int], message: str
) -> None:
    problem, _ = plain_problem()
    with pytest.raises(InputError, match=message):
        complete_layout(problem, partial)
