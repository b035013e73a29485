import numpy as np
import pytest

from shardproof.models.errors import InputError
from shardproof.models.pipeline.held import peak_bytes
from shardproof.models.pipeline.schedules import order
from shardproof.models.pipeline.sweep import makespan
from shardproof.models.pipeline.weights import place_weights

FULL, KEPT = 100, 40


def placed(p, m, times, states, seconds=20.0, p2p=0.0):
    """Place weight gradients where every rank may hold ``states`` full states."""
    f, b, w = (np.full(p, t, np.float64) for t in times)
    limit = np.full(p, states * FULL)
    full, kept = np.full(p, FULL), np.full(p, KEPT)
    return place_weights(m, f, b, w, full, kept, limit, p2p, seconds)


@pytest.mark.parametrize("states", [2, 4, 6, 7])
def test_answer_fits_runs_and_lies_above_its_bound(states):
    found = placed(4, 6, (1, 1.2, 0.8), states)
    sizes = np.full((2, 1, 4, 1), [[[[FULL]]], [[[KEPT]]]])
    assert (peak_bytes(found.order, *sizes) <= states * FULL).all()
    one = np.ones((1, 4, 1))
    simulated = makespan(found.order, one, 1.2 * one, 0.8 * one)
    assert found.makespan == simulated[0]
    assert found.bound <= found.makespan * (1 + 1e-6)
    assert sorted(map(tuple, found.order.slots.tolist())) == sorted(
        map(tuple, order("zb-h1", 4, 1, 6).slots.tolist())
    )


def test_memory_of_zb_h2_gives_its_idle_and_the_proof():
    """(p - 1) F is the least: no rank can start before its first input."""
    found = placed(4, 8, (1, 1, 1), 7)
    assert found.makespan - 8 * 3 == pytest.approx(3)
    assert found.gap < 1e-6


def test_less_memory_than_zb_h2_can_be_as_fast():
    """6 states of 4 ranks, where ZB-H1 idles 4.2 and ZB-H2 needs 7."""
    found = placed(4, 8, (1, 1.2, 0.8), 6)
    assert found.makespan - 8 * 3 < 4.2
    assert found.gap < 1e-6


def test_more_memory_is_never_slower():
    spans = [placed(3, 5, (1, 1.5, 0.5), states).makespan for states in (1, 2, 3, 5)]
    assert spans == sorted(spans, reverse=True)


def test_unequal_stages_and_hops():
    forward = np.array([1.0, 1.3, 0.9])
    full, kept, limit = (np.full(3, x) for x in (FULL, KEPT, 4 * FULL))
    found = place_weights(
        5, forward, 1.1 * forward, 0.9 * forward, full, kept, limit, 0.05, 5.0
    )
    path = forward.sum() + 1.1 * forward.sum() + 4 * 0.05
    assert found.makespan >= path
    assert found.bound <= found.makespan * (1 + 1e-6)


def test_a_rank_that_cannot_hold_one_micro_batch_is_named():
    with pytest.raises(InputError, match="rank 0 needs 100 bytes"):
        placed(2, 4, (1, 1, 1), 0)
