import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from shapes import constant, shapes

from shardproof.models.errors import InputError
from shardproof.models.pipeline.closed import closed_form
from shardproof.models.pipeline.schedules import NAMES, order
from shardproof.models.pipeline.sweep import makespan

TIMES = st.sampled_from([0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0])
HOPS = st.sampled_from([0.0, 0.0, 0.0, 0.1, 0.5, 4.0])
PAIRS = st.sampled_from([None, 1.0, 2.0, 2.5, 3.0, 4.0])


#: Forward, backward, weight gradient and hop that a schedule has forms for.
EQUAL = st.tuples(TIMES, st.just(0.0)).map(lambda t: (t[0], t[0], t[0], t[1]))
FILLED = st.tuples(TIMES, TIMES, st.just(0.0)).map(lambda t: (t[0], *t))
ANY = st.tuples(TIMES, TIMES, TIMES, HOPS)


@pytest.mark.parametrize("schedule", NAMES)
@given(st.data(), PAIRS)
@settings(max_examples=40, deadline=None)
def test_closed_form_is_the_simulation_where_claimed(schedule, data, pair):
    equal = schedule in ("v-half", "v-min")
    f, b, w, h = data.draw(EQUAL if equal else st.one_of(EQUAL, FILLED, ANY))
    least = 2 * 8 if equal else 1
    shape = data.draw(shapes(names=(schedule,), extra=False, least_micros=least))
    name, p, v, m, group, _ = shape
    claimed = closed_form(name, p, v, m, f, b, w, h, pair, group)
    plan = order(*shape)
    assume(np.isfinite(claimed[0]))
    shape3 = (1, p, plan.chunks)
    simulated = makespan(
        plan,
        constant(f, *shape3),
        constant(b, *shape3),
        constant(w, *shape3),
        h,
        None if pair is None else np.full((1, p, plan.chunks, plan.chunks), pair),
    )
    assert claimed[0] == pytest.approx(simulated[0], rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_every_schedule_claims_a_form_for_equal_unit_times(name):
    v = 2 if name in ("interleaved", "zbv", "v-half", "v-min", "dualpipev") else 1
    assert np.isfinite(closed_form(name, 8, v, 32, 1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("name", "w"),
    [("zb-h1", 3), ("zb-h2", 0.2), ("zbv", 3), ("dualpipe", 3), ("dualpipev", 3)],
)
def test_no_form_is_claimed_where_weight_gradients_do_not_fit_the_gaps(name, w):
    v = 2 if name in ("zbv", "dualpipev") else 1
    assert np.isnan(closed_form(name, 8, v, 32, 1.0, 1.0, w))


def test_many_configurations_at_once():
    m = np.array([8, 16, 32])
    times = closed_form("1f1b", 4, 1, m, np.array([1.0, 2.0, 3.0]), 2.0)
    np.testing.assert_allclose(times, (m + 3) * np.array([3.0, 4.0, 5.0]))


def test_unknown_schedule_is_refused():
    with pytest.raises(InputError, match="zb-h1"):
        closed_form("zb-h3", 4, 1, 8, 1.0, 1.0)
