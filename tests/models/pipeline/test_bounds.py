import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import shapes, stage_times

from shardproof.models.errors import InputError
from shardproof.models.pipeline.bounds import BOUNDED, step_time_bound
from shardproof.models.pipeline.schedules import order
from shardproof.models.pipeline.sweep import makespan

ROUNDING = 1 + 1e-12


def gaps(rng, n, vpp):
    """Return n shares of the simulated time by which the bound falls short."""
    found = []
    while sum(map(len, found)) < n:
        p = int(rng.integers(2, 17))
        v = vpp
        m = p * int(rng.integers(1, 9)) if v > 1 else int(rng.integers(1, 65))
        plan = order("interleaved" if v > 1 else "1f1b", p, v, m)
        forward = stage_times(rng, 25, p, v)
        backward = 2 * forward * rng.uniform(0.9, 1.1, forward.shape)
        hop = rng.choice([0.0, 0.02, 0.3], 25)
        simulated = makespan(plan, forward, backward, p2p=hop)
        bound = step_time_bound(plan.schedule, forward, backward, m, hop)
        assert (bound <= simulated * ROUNDING).all()
        found.append(1 - bound / simulated)
    return np.concatenate(found)


@pytest.mark.parametrize("vpp", [1, 2, 3, 4])
def test_bound_is_never_above_the_simulation(vpp):
    share = gaps(np.random.default_rng(vpp), 150, vpp)
    assert share.mean() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("vpp", [1, 2, 3, 4])
def test_bound_is_never_above_the_simulation_of_ten_thousand(vpp, capsys):
    share = gaps(np.random.default_rng(100 + vpp), 2500, vpp)
    with capsys.disabled():
        print(f"\nv = {vpp}: bound {share.mean():.2%} below on average, ", end="")
        print(f"{share.max():.2%} at most")


@given(shapes(names=BOUNDED), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_bound_holds_for_any_group_and_remainder(shape, seed):
    name, p, v, m, group, _ = shape
    rng = np.random.default_rng(seed)
    forward, backward = stage_times(rng, 5, p, v), stage_times(rng, 5, p, v)
    hop = rng.choice([0.0, 0.05, 2.0], 5)
    plan = order(name, p, v, m, group)
    bound = step_time_bound(name, forward, backward, m, hop, group)
    assert (bound <= makespan(plan, forward, backward, p2p=hop) * ROUNDING).all()


@given(shapes(names=("1f1b", "interleaved")), st.floats(0.5, 2), st.floats(0.5, 3))
@settings(max_examples=50, deadline=None)
def test_bound_is_the_step_time_of_equal_stages_without_hops(shape, f, b):
    name, p, v, m, group, _extra = shape
    forward, backward = np.full((1, p, v), f), np.full((1, p, v), b)
    simulated = makespan(order(name, p, v, m, group), forward, backward)
    bound = step_time_bound(name, forward, backward, m, group=group)
    assert bound[0] == pytest.approx(simulated[0], rel=1e-12)


@given(shapes(names=("gpipe",)), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_gpipe_bound_is_exact_for_any_stages(shape, seed):
    _, p, v, m, _, _ = shape
    rng = np.random.default_rng(seed)
    forward, backward = stage_times(rng, 4, p, v), stage_times(rng, 4, p, v)
    bound = step_time_bound("gpipe", forward, backward, m, 0.1)
    simulated = makespan(order("gpipe", p, v, m), forward, backward, p2p=0.1)
    np.testing.assert_allclose(bound, simulated, rtol=1e-12)


def test_rows_may_differ_in_micro_batches():
    rng = np.random.default_rng(0)
    forward, backward = stage_times(rng, 4, 4, 2), stage_times(rng, 4, 4, 2)
    m = np.array([4, 8, 12, 64])
    together = step_time_bound("interleaved", forward, backward, m)
    for i in range(4):
        row = slice(i, i + 1)
        alone = step_time_bound("interleaved", forward[row], backward[row], int(m[i]))
        assert alone[0] == together[i]


def test_schedule_without_bound_is_refused():
    with pytest.raises(InputError, match="zbv"):
        step_time_bound("zbv", np.ones((1, 4, 2)), np.ones((1, 4, 2)), 8)
