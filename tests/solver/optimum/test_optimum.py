"""The optimum of a goal, against scoring every configuration there is."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import plain_problem

from shardproof.models.errors import InputError
from shardproof.models.layout import Layout
from shardproof.models.problem import Problem
from shardproof.solver.feasible import enumerate_feasible
from shardproof.solver.optimum import Goal, Prices, limit, optimum
from shardproof.solver.optimum.stages import floor_times
from shardproof.solver.optimum.variants import variant, variants
from shardproof.solver.scoring import Scores
from shardproof.solver.space import Space
from shardproof.solver.stages import best_stages, skeleton

PRICES = Prices(per_hour=2.0, watts=700.0, train_tokens=1e12)


def small() -> tuple[Problem, Space]:
    problem, space = plain_problem(nodes=2, hbm_bytes=3 * 2**30, global_batch=64)
    return problem, space


def everything(problem: Problem, space: Space) -> list[float]:
    """Simulate all configurations; their step times ascending."""
    found = enumerate_feasible(problem, space)
    scored = Scores(problem).simulated(list(found.layouts()))
    return sorted(s.step_time_s for s in scored)


@pytest.mark.parametrize("objective", ["tokens", "step-time", "train-time", "cost"])
def test_the_answers_are_the_best_of_all(objective: str) -> None:
    problem, space = small()
    found = optimum(
        problem, space, goal=Goal(objective=objective, prices=PRICES), top=4
    )
    expected = everything(problem, space)[:4]
    assert [a.step_time for a in found.answers] == expected
    assert found.proof.status == "optimal"
    assert found.proof.gap == 0
    assert found.proof.scored <= found.proof.feasible


def test_figures_follow_from_their_definitions() -> None:
    problem, _ = small()
    tokens = problem.training.global_batch * problem.training.seq_len
    goal = Goal(prices=PRICES)
    assert goal.figure("tokens", problem, 2.0) == tokens / 2.0 / 16
    assert goal.figure("train-time", problem, 2.0) == 1e12 / tokens * 2.0
    assert goal.figure("cost", problem, 3600.0) == 2.0 * 16 / tokens
    assert goal.figure("energy", problem, 1.0) == 700.0 * 16 / tokens


def test_limits_are_kept_and_cost_nothing_above_them() -> None:
    problem, space = small()
    times = everything(problem, space)
    middle = times[len(times) // 2]
    goal = Goal(limits=(limit(f"step-time<={middle}"), limit("headroom>=0.25GiB")))
    found = optimum(problem, space, goal=goal, top=10_000)
    room = problem.cluster.device.hbm_bytes - 2**28
    assert found.answers
    for answer in found.answers:
        assert answer.step_time <= middle
        assert answer.choice is not None
        assert answer.choice.memory.peak_bytes <= room


def test_nothing_is_found_below_an_impossible_limit() -> None:
    problem, space = small()
    found = optimum(problem, space, goal=Goal(limits=(limit("mfu>=0.999"),)))
    assert not found.answers


def test_fewer_devices_are_looked_at_under_a_limit_on_devices() -> None:
    problem, space = small()
    goal = Goal(objective="step-time", limits=(limit("gpus<=16"),))
    sizes = {p.cluster.world_size for p in variants(problem, goal, 0.0)}
    assert sizes == {8, 16}
    best = optimum(problem, space, goal=goal, top=1).answers[0]
    half = replace(problem, cluster=replace(problem.cluster, nodes=1))
    both = everything(problem, space)[:1] + everything(half, space)[:1]
    assert best.step_time == min(both)


def test_batches_stay_within_the_tolerance() -> None:
    problem, _ = small()
    batches = [
        p.training.global_batch for p in variants(problem, Goal(), batch_tolerance=0.25)
    ]
    assert batches[0] == 64
    assert len(set(batches)) == len(batches) > 2
    assert all(48 <= b <= 80 for b in batches)


def test_no_stages_undercut_a_skeleton_s_floor() -> None:
    problem, space = small()
    at = variant(problem, space, Goal())
    rows = [i for i in range(len(at.bounds)) if at.columns["pp"][i] in (2, 4)][::37]
    for i in rows:
        row = {n: c[i : i + 1].copy() for n, c in at.columns.items()}
        row |= {"split": np.zeros(1, np.int64), "recompute": np.zeros(1, np.int64)}
        layout = Layout(**{n: int(c[0]) for n, c in row.items()})
        plan = best_stages(skeleton(problem, layout), seconds=3.0, exact=False)
        assert plan is not None
        assert float(floor_times(at, row)[0]) <= plan.step_time


def test_chosen_stages_are_never_worse() -> None:
    problem, space = small()
    plain = optimum(problem, space, top=1)
    chosen = optimum(problem, space, top=1, stages=True, seconds=6.0)
    assert chosen.answers[0].step_time <= plain.answers[0].step_time
    assert chosen.proof.skeletons > 0
    assert chosen.proof.stage_gap is not None
    assert 0 <= chosen.proof.stage_gap < 1


@pytest.mark.parametrize(
    "text", ["speed>=3", "step-time>=3", "headroom>=4miles", "gpus<=", "mfu>=1.2.3"]
)
def test_limits_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        limit(text)


def test_a_figure_that_is_not_known_is_asked_for() -> None:
    problem, space = small()
    with pytest.raises(InputError, match="--train-tokens"):
        optimum(problem, space, goal=Goal(objective="train-time"))
