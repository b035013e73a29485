import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_simulation import plain_ends
from shapes import shapes, stage_times

from shardproof.models.errors import InputError
from shardproof.models.pipeline.schedules import order
from shardproof.models.pipeline.sweep import makespan, simulate
from shardproof.models.pipeline.timeline import timeline


def drawn(shape, seed, n=3):
    plan = order(*shape)
    rng = np.random.default_rng(seed)
    forward, backward, weight = (
        stage_times(rng, n, plan.pp, plan.chunks) for _ in range(3)
    )
    hop = rng.choice([0.0, 0.03, 0.7], n)
    return plan, forward, backward, weight if plan.split else None, hop


def first(weight, hop):
    return None if weight is None else weight[0], hop[0]


@given(shapes(), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_sweep_equals_a_plain_event_simulation(shape, seed):
    plan, forward, backward, weight, hop = drawn(shape, seed)
    swept = makespan(plan, forward, backward, weight, hop)
    for i in range(len(swept)):
        w = None if weight is None else weight[i].tolist()
        ends = plain_ends(plan, forward[i].tolist(), backward[i].tolist(), w, hop[i])
        latest = max(max(rank) for rank in ends)
        assert swept[i] == pytest.approx(latest, rel=1e-12)
        split = None if weight is None else weight[i]
        one = timeline(plan, forward[i], backward[i], split, hop[i])
        np.testing.assert_allclose(one.end, [t for rank in ends for t in rank])


@given(shapes(), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_a_configuration_is_timed_alike_alone_and_among_many(shape, seed):
    plan, *given_times = drawn(shape, seed, n=260)
    together = simulate(plan, *given_times)
    for i in (0, 128, 259):
        own = [None if t is None else t[i : i + 1] for t in given_times]
        alone = simulate(plan, *own)
        assert alone.makespan[0] == together.makespan[i]
        np.testing.assert_array_equal(alone.busy[0], together.busy[i])


@given(shapes(), st.integers(0, 2**32), st.floats(0.1, 10))
@settings(max_examples=50, deadline=None)
def test_time_scales_and_never_falls_when_work_grows(shape, seed, factor):
    plan, forward, backward, weight, hop = drawn(shape, seed)
    base = makespan(plan, forward, backward, weight, hop)
    scaled = makespan(
        plan,
        factor * forward,
        factor * backward,
        None if weight is None else factor * weight,
        factor * hop,
    )
    np.testing.assert_allclose(scaled, factor * base, rtol=1e-12)
    assert (makespan(plan, forward * 1.1, backward, weight, hop) >= base).all()
    assert (makespan(plan, forward, backward, weight, hop + 0.1) >= base).all()


@given(shapes(), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_timeline_accounts_for_all_time(shape, seed):
    plan, forward, backward, weight, hop = drawn(shape, seed, n=1)
    line = timeline(plan, forward[0], backward[0], *first(weight, hop))
    whole = simulate(plan, forward, backward, weight, hop)
    assert line.makespan == whole.makespan[0]
    np.testing.assert_allclose(line.busy, whole.busy[0])
    np.testing.assert_allclose(line.busy + line.idle, line.makespan)
    assert (line.idle >= -1e-9).all()
    events = list(line.events())
    for before, after in itertools.pairwise(events):
        assert before.rank != after.rank or before.end <= after.start + 1e-12


@given(shapes(), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_critical_path_adds_up_to_the_step(shape, seed):
    """Its slots follow each other with at most a hop between, from 0 to the end."""
    plan, forward, backward, weight, hop = drawn(shape, seed, n=1)
    line = timeline(plan, forward[0], backward[0], *first(weight, hop))
    path = list(line.critical)
    assert line.start[path[0]] == pytest.approx(0, abs=1e-12)
    assert line.end[path[-1]] == line.makespan
    waited = line.start[path[1:]] - line.end[path[:-1]]
    crosses = plan.rank[path[1:]] != plan.rank[path[:-1]]
    np.testing.assert_allclose(waited, np.where(crosses, hop[0], 0), atol=1e-9)


def test_bytes_over_time_peak_and_return_to_zero():
    """1F1B on 4 ranks: 4, 3, 2, 1 micro-batches of 10 bytes."""
    line = timeline(order("1f1b", 4, 1, 8), np.ones((4, 1)), 2 * np.ones((4, 1)))
    over_time = line.bytes_over_time(np.full((4, 1), 10))
    assert [size.max() for _, size in over_time] == [40, 30, 20, 10]
    assert [size[-1] for _, size in over_time] == [0, 0, 0, 0]
    assert over_time[0][0][-1] == pytest.approx((8 + 3) * 3)


def test_labels_name_what_runs():
    line = timeline(order("dualpipe", 4, 1, 8), *(np.ones((4, 2)) for _ in range(3)))
    assert {event.label for event in line.events()} == {"F", "B", "W", "BW", "F&BW"}


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((np.ones((2, 4, 2)), np.ones((2, 4, 1))), "shape"),
        ((np.ones((2, 4, 1)), -np.ones((2, 4, 1))), "at least 0"),
        ((np.full((2, 4, 1), np.nan), np.ones((2, 4, 1))), "finite"),
    ],
)
def test_bad_times_are_refused(times, words):
    with pytest.raises(InputError, match=words):
        makespan(order("1f1b", 4, 1, 8), *times)


def test_split_schedules_ask_for_weight_gradients():
    with pytest.raises(InputError, match="zb-h1 runs weight gradients apart"):
        makespan(order("zb-h1", 4, 1, 8), np.ones((4, 1)), np.ones((4, 1)))
