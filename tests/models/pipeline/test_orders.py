import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from plain_orders import interleaved, one_f_one_b
from shapes import shapes

from shardproof.models.errors import InputError
from shardproof.models.pipeline.held import held, peak_bytes
from shardproof.models.pipeline.inflight import in_flight, saturation
from shardproof.models.pipeline.network import DeadlockError, network
from shardproof.models.pipeline.order import order_of, run_bw, run_f
from shardproof.models.pipeline.placement import placement
from shardproof.models.pipeline.schedules import NAMES, order


def runs(plan, column):
    """List what a column runs: rank, chunk, micro-batch, and the slot's position."""
    found = []
    for rank in range(plan.pp):
        for position, slot in enumerate(plan.of_rank(rank).tolist()):
            if slot[column] >= 0:
                found.append((rank, slot[column], slot[column + 1], position))
    return found


@given(shapes())
@settings(max_examples=200, deadline=None)
def test_every_operation_runs_once_and_after_what_it_needs(shape):
    plan = order(*shape)
    m = shape[3]
    expected = sorted(
        (rank, chunk, micro)
        for path in plan.placement.paths
        for rank, chunk in path
        for micro in range(m // len(plan.placement.paths))
    )
    where = []
    for column in (0, 2, 4):
        found = runs(plan, column)
        assert sorted(unit[:3] for unit in found) == expected
        where.append({unit[:3]: unit[3] for unit in found})
    for unit in expected:
        f, b, w = (positions[unit] for positions in where)
        assert f < b <= w
    network(plan)  # raises if the ranks wait for each other


@given(shapes())
@settings(max_examples=100, deadline=None)
def test_memory_returns_to_zero(shape):
    plan = order(*shape)
    full, kept = held(plan)
    for rank in range(plan.pp):
        last = plan.starts[rank + 1] - 1
        slot = plan.slots[last]
        left = full[last].sum() + kept[last].sum()
        # Only what the last slot itself works on is still there.
        assert left == 1
        assert slot[4] >= 0
    assert (full >= 0).all()
    assert (kept >= 0).all()


@pytest.mark.parametrize(("p", "m"), [(2, 1), (4, 3), (4, 9), (7, 20)])
def test_1f1b_is_its_description(p, m):
    plan = order("1f1b", p, 1, m)
    for rank in range(p):
        assert as_words(plan.of_rank(rank)) == one_f_one_b(p, rank, m)


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize(
    ("p", "v", "m", "g"), [(2, 2, 4, 2), (4, 3, 8, 4), (4, 2, 9, 5), (3, 4, 17, 7)]
)
def test_interleaved_is_its_description(p, v, m, g, extra):
    plan = order("interleaved", p, v, m, g, extra)
    for rank in range(p):
        words = as_words(plan.of_rank(rank))
        assert words == interleaved(p, v, rank, m, g, extra)


def as_words(slots):
    return [
        ("F", s[0], s[1]) if s[0] >= 0 else ("B", s[2], s[3]) for s in slots.tolist()
    ]


@given(shapes(extra=False))
@settings(max_examples=60, deadline=None)
def test_in_flight_is_the_peak_of_the_whole_order(shape):
    """Reduced and derived loads against a count over the real order of all m."""
    name, p, v, m, group, _ = shape
    plan = order(name, p, v, m, group)
    loads = in_flight(name, p, v, m, group)
    rng = np.random.default_rng(m)
    for _ in range(5):
        sizes = rng.integers(0, 100, (1, p, plan.chunks))
        peaks = peak_bytes(plan, sizes)[0]
        for rank in range(p):
            largest = max(np.dot(load, sizes[0, rank]) for load in loads[rank])
            assert largest == peaks[rank]


@pytest.mark.parametrize("name", [n for n in NAMES if n != "gpipe"])
@pytest.mark.parametrize("p", [2, 4, 6])
def test_saturated_loads_stay(name, p):
    v = 2 if name in ("interleaved", "zbv", "v-half", "v-min", "dualpipev") else 1
    enough = saturation(name, p, v)
    for m in range(enough, enough + 3 * p + 1, p):
        plan = order(name, p, v, m)
        loads = in_flight(name, p, v, enough)
        for sizes in itertools.product((1, 5), repeat=plan.chunks):
            laid = np.broadcast_to(np.array(sizes), (1, p, plan.chunks))
            peaks = [max(np.dot(load, sizes) for load in rank) for rank in loads]
            assert peak_bytes(plan, laid)[0].tolist() == peaks


def test_ranks_that_wait_for_each_other_are_a_deadlock():
    first = [run_f(0, 0), run_bw(0, 0), run_f(0, 1), run_bw(0, 1)]
    second = [run_f(0, 0), run_f(0, 1), run_bw(0, 0), run_bw(0, 1)]
    plan = order_of("crossed", 2, placement("loop", 2, 1), [first, second])
    with pytest.raises(DeadlockError, match="crossed"):
        network(plan)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (("zbv", 4, 2, 6), "m >= 2 pp - 1 = 7"),
        (("zbv", 4, 1, 8), "vpp = 2"),
        (("zb-h1", 4, 2, 8), "vpp = 1"),
        (("dualpipe", 5, 1, 20), "even"),
        (("dualpipe", 4, 1, 9), "even"),
        (("dualpipev", 4, 2, 7), "m >= 2 pp = 8"),
        (("1f1b", 0, 1, 8), "at least 1"),
        (("gpip", 4, 1, 8), "gpipe"),
    ],
)
def test_shapes_that_a_schedule_cannot_run_are_refused(shape, words):
    with pytest.raises(InputError, match=words):
        order(*shape)
