"""Robustness: neighbours against evaluating them, draws against their own laws."""

from dataclasses import replace

import pytest
from strategies import plain_problem

from shardproof.models.errors import InputError
from shardproof.models.layout import Layout, axis_label
from shardproof.solver.feasible import enumerate_feasible
from shardproof.solver.robust import NEAR, robust
from shardproof.solver.single import evaluate


def steps_on(layout: Layout, own: dict[str, int]) -> list[str]:
    """Return the axes on which a layout differs, but for those that follow others."""
    following = ("schedule", "split", "sp", "dp", "edp", "m", "gbs")
    point = layout.point()
    return [n for n, c in point.items() if c != own[n] and n not in following]


def test_neighbours_are_the_fastest_one_step_away() -> None:
    problem, space = plain_problem()
    found = robust(problem, space, draws=20)
    assert found is not None
    everything = list(enumerate_feasible(problem, space).layouts())
    best = found.best
    for neighbour in found.neighbours:
        own = best.layout.point()
        others = [x for x in everything if steps_on(x, own) == [neighbour.axis]]
        others = [
            x
            for x in others
            if axis_label(neighbour.axis, x.point()[neighbour.axis]) == neighbour.value
        ]
        times = [evaluate(problem, x).projection.step_time_s for x in others]
        if neighbour.layout is None:
            assert not times
        else:
            least = min(times) / best.projection.step_time_s - 1
            assert neighbour.slower == pytest.approx(least, abs=0.02)
            assert neighbour.layout in others
    there = [n for n in found.neighbours if n.layout]
    near = sum(n.slower <= NEAR for n in there)
    assert (found.shape == "broad basin") == (bool(there) and 2 * near >= len(there))


def test_wins_add_up_and_equal_seeds_agree() -> None:
    problem, space = plain_problem()
    once, again = (robust(problem, space, draws=30, seed=7) for _ in range(2))
    other = robust(problem, space, draws=30, seed=8)
    assert once == again
    assert once is not None
    assert other is not None
    assert sum(r.wins for r in once.rivals) == pytest.approx(1)
    assert once.best.layout in [r.layout for r in once.rivals]
    assert all(0 <= r.regret_mean <= r.regret_p90 + 1 for r in once.rivals)
    assert [r.regret_mean for r in once.rivals] != [r.regret_mean for r in other.rivals]


def test_one_node_less_is_the_plan_of_the_smaller_cluster() -> None:
    problem, space = plain_problem()
    found = robust(problem, space, draws=1)
    assert found is not None
    if problem.cluster.nodes == 1:
        assert found.one_node_less is None
    pair = replace(problem, cluster=replace(problem.cluster, nodes=2))
    from shardproof.solver.answer import Answer
    from shardproof.solver.plan import plan

    two, one = (
        robust(pair, space, draws=1),
        plan(replace(problem, cluster=replace(problem.cluster, nodes=1)), space, top=1),
    )
    assert two is not None
    assert two.one_node_less == (one.answers[0] if isinstance(one, Answer) else None)


def test_draws_are_a_sensible_number() -> None:
    with pytest.raises(InputError, match="draws"):
        robust(*plain_problem(), draws=0)
