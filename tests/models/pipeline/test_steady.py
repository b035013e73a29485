import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import stage_times

from shardproof.models.errors import InputError
from shardproof.models.pipeline.schedules import order
from shardproof.models.pipeline.steady import step_times
from shardproof.models.pipeline.sweep import makespan


@st.composite
def turns(draw):
    name = draw(st.sampled_from(["gpipe", "1f1b", "interleaved"]))
    p = draw(st.integers(1, 8))
    if name != "interleaved":
        return name, p, 1, [draw(st.integers(1, 150)) for _ in range(4)], None
    g = draw(st.integers(p, p + 3))
    rests = st.sampled_from([0, *range(p, g)])
    m = [draw(st.integers(1, 20)) * g + draw(rests) for _ in range(4)]
    return name, p, draw(st.integers(2, 4)), m, g


@given(turns(), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_few_periods_give_what_the_whole_order_gives(case, seed):
    name, p, v, m, group = case
    rng = np.random.default_rng(seed)
    forward, backward = stage_times(rng, 4, p, v), stage_times(rng, 4, p, v)
    hop = rng.choice([0.0, 0.02, 0.7], 4)
    quick = step_times(name, forward, backward, np.array(m), hop, group)
    for i in range(4):
        plan = order(name, p, v, m[i], group)
        whole = makespan(plan, forward[i], backward[i], p2p=hop[i])
        assert quick[i] == pytest.approx(whole[0], rel=1e-11)


def test_a_huge_batch_costs_what_a_small_one_does():
    """16,384 micro-batches on 16 ranks with heavy ends, in CPU seconds."""
    forward = np.ones((50, 16, 2))
    forward[:, 0, 0] = 1.1
    forward[:, -1, -1] = np.linspace(1.2, 1.5, 50)
    step_times("interleaved", forward, 2 * forward, 1024, 0.01)
    start = time.process_time()
    step_times("interleaved", forward, 2 * forward, 16384, 0.01)
    assert time.process_time() - start < 2


def test_schedule_without_turns_is_refused():
    with pytest.raises(InputError, match="zbv"):
        step_times("zbv", np.ones((1, 4, 2)), np.ones((1, 4, 2)), 8)
