import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_orders import held_over_time, interleaved, one_f_one_b

from shardproof.models.errors import InputError
from shardproof.models.pipeline.inflight import in_flight, saturation


def heaviest(vectors, weights):
    return max(
        sum(n * w for n, w in zip(held, weights, strict=True)) for held in vectors
    )


@st.composite
def shapes(draw):
    p = draw(st.integers(2, 8))
    v = draw(st.integers(1, 4))
    g = draw(st.integers(p, p + 4))
    m = draw(st.integers(1, 5 * g))
    return p, v, g, m


@given(shapes(), st.integers(0, 2**32))
def test_heaviest_moment_of_interleaved_order_is_kept(shape, seed):
    p, v, g, m = shape
    rng = random.Random(seed)
    loads = in_flight("interleaved", p, v, m, g)
    for rank in range(p):
        over_time = set(held_over_time(interleaved(p, v, rank, m, g), v))
        assert set(loads[rank]) <= over_time
        for _ in range(10):
            weights = [rng.choice([0, 1, rng.randint(0, 1000)]) for _ in range(v)]
            assert heaviest(loads[rank], weights) == heaviest(over_time, weights)


@given(st.integers(1, 16), st.integers(1, 64))
def test_1f1b_holds_what_its_order_holds(p, m):
    for rank, vectors in enumerate(in_flight("1f1b", p, 1, m)):
        over_time = held_over_time(one_f_one_b(p, rank, m), 1)
        assert vectors == (max(over_time),)


def test_gpipe_holds_every_micro_batch():
    assert in_flight("gpipe", 3, 1, 1000) == (((1000,),),) * 3


def test_peak_can_come_after_the_warm_up():
    """p 4, v 2: chunks of 3:1 hold 27 or 19, not 22 (11 equal ones of 2)."""
    first = in_flight("interleaved", 4, 2, 16)[0]
    assert heaviest(first, (3, 1)) == 27
    assert heaviest(first, (1, 3)) == 19
    assert heaviest(first, (1, 1)) == 11


@given(shapes(), st.integers(0, 20))
def test_nothing_changes_from_saturation_on(shape, more):
    p, v, g, m = shape
    enough = saturation("interleaved", p, v, g) + m % g
    now = [set(held_over_time(interleaved(p, v, 0, enough, g), v))]
    later = [set(held_over_time(interleaved(p, v, 0, enough + more * g, g), v))]
    steady = {s for s in now[0] if sum(s) == max(map(sum, now[0]))}
    assert steady == {s for s in later[0] if sum(s) == max(map(sum, later[0]))}
    many = in_flight("interleaved", p, v, enough + more * g, g)
    assert many == in_flight("interleaved", p, v, enough, g)


@given(shapes())
def test_an_earlier_rank_holds_no_less(shape):
    p, v, g, m = shape
    loads = in_flight("interleaved", p, v, m, g)
    for chunk in range(v):
        weights = [int(c == chunk) for c in range(v)]
        peaks = [heaviest(vectors, weights) for vectors in loads]
        assert peaks == sorted(peaks, reverse=True)


def test_large_batches_are_cheap():
    """Thousands of shapes are asked for in a plan of two seconds."""
    start = time.process_time()
    shapes = [(p, v) for p in (2, 4, 8, 16, 32, 64) for v in (2, 3, 4, 6)]
    for p, v in shapes:
        for m in range(p, 16385, 16384 // p // 8 * p):
            in_flight("interleaved", p, v, m)
    assert time.process_time() - start < 0.5


def test_unknown_schedule_names_the_known_ones():
    with pytest.raises(InputError, match="1f1b"):
        in_flight("1f2b", 4, 1, 8)
