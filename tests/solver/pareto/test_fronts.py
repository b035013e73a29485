"""Fronts equal what comparing every pair of configurations leaves."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from strategies import plain_problem, problems

from shardproof.models.errors import InputError
from shardproof.models.problem import Problem
from shardproof.solver.feasible import enumerate_feasible
from shardproof.solver.pareto import Front, front_over_sizes
from shardproof.solver.pareto.sizes import knee
from shardproof.solver.single import evaluate
from shardproof.solver.space import Space


def brute_front(problem: Problem, space: Space) -> set[tuple[int, float]]:
    """Simulate everything and compare every pair."""
    everything = [
        evaluate(problem, layout)
        for layout in enumerate_feasible(problem, space).layouts()
    ]
    points = {(c.memory.peak_bytes, c.projection.step_time_s) for c in everything}
    return {
        p
        for p in points
        if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)
    }


def pairs(front: Front) -> list[tuple[float, float]]:
    first, second = front.objectives
    return [(p.values[first], p.values[second]) for p in front.points]


@given(problems())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_front_equals_brute_force(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    if enumerate_feasible(problem, space).count > 400:
        return
    found = front_over_sizes([problem], space, ("memory", "step-time"))
    assert set(pairs(found)) == brute_front(problem, space)
    assert len(set(pairs(found))) == len(found.points)


def test_a_front_over_sizes_equals_comparing_the_sizes_fronts() -> None:
    problem, space = plain_problem()
    sizes = [
        replace(problem, cluster=replace(problem.cluster, nodes=n))
        for n in range(1, problem.cluster.nodes + 1)
    ]
    names = ("memory", "step-time", "gpus")
    found = front_over_sizes(sizes, space, names)
    points = {
        (peak, seconds, float(one.cluster.world_size))
        for one in sizes
        if one.training.global_batch % one.cluster.world_size == 0
        for peak, seconds in brute_front(one, space)
    }
    best = {
        p
        for p in points
        if not any(
            q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in points
        )
    }
    assert {tuple(p.values[n] for n in names) for p in found.points} >= best
    for point in found.points:
        again = evaluate(point.problem, point.choice.layout)
        assert again.memory.peak_bytes == point.values["memory"]
        assert again.projection.step_time_s == point.values["step-time"]


def test_throughput_and_step_time_have_the_same_front() -> None:
    problem, space = plain_problem()
    slow = front_over_sizes([problem], space, ("memory", "step-time"))
    fast = front_over_sizes([problem], space, ("memory", "throughput"))
    assert [p.choice for p in slow.points] == [p.choice for p in fast.points]
    rates = [p.values["throughput"] for p in fast.points]
    assert rates == sorted(rates)
    assert {p.role for p in fast.points if p.role} <= {"end", "knee"}
    assert fast.points[0].role == fast.points[-1].role == "end"


def test_the_knee_is_where_a_bent_line_bends() -> None:
    x = np.linspace(0, 1, 11)
    bent = np.stack([x, np.where(x < 0.3, 1 - 3 * x, 0.1 * (1 - x))], axis=1)
    assert knee(bent) == 3


@pytest.mark.parametrize(
    "names", [("memory",), ("memory", "memory"), ("memory", "speed")]
)
def test_bad_objectives_are_refused_in_a_sentence(names: tuple[str, ...]) -> None:
    problem, space = plain_problem()
    with pytest.raises(InputError, match="objective"):
        front_over_sizes([problem], space, names)


def test_cost_without_a_price_says_what_to_give() -> None:
    problem, space = plain_problem()
    with pytest.raises(InputError, match="--price"):
        front_over_sizes([problem], space, ("cost", "memory"))
