import numpy as np
import pytest

from shardproof.models.pipeline.chunks import (
    PartTimes,
    chunk_times,
    hop_time,
    on_ranks,
)
from shardproof.models.pipeline.placement import placement
from shardproof.models.pipeline.schedules import order
from shardproof.models.pipeline.sweep import simulate
from shardproof.models.stages import Chunk

PARTS = PartTimes(
    layers=np.array([[1.0, 4.0]]),
    embedding=np.array([0.5]),
    head=np.array([2.0]),
    mtp=np.array([3.0]),
)


def chunk(dense, moe, mtp=0, embedding=False, head=False):
    return Chunk(layers=(dense, moe), mtp=mtp, embedding=embedding, head=head)


def test_parts_lie_on_their_stages():
    """An explicit layout: embedding alone, layers of both kinds, MTP with the loss."""
    stages = (
        (chunk(0, 0, embedding=True), chunk(0, 2)),
        (chunk(2, 1), chunk(0, 1, mtp=1, head=True)),
    )
    np.testing.assert_array_equal(
        chunk_times(stages, PARTS), [[[0.5, 8.0], [6.0, 9.0]]]
    )


def test_simulation_takes_explicit_layouts_with_empty_stages():
    stages = (
        (chunk(0, 0, embedding=True), chunk(0, 0)),
        (chunk(4, 0), chunk(0, 0, head=True)),
    )
    forward = chunk_times(stages, PARTS)
    result = simulate(order("interleaved", 2, 2, 4), forward, 2 * forward)
    np.testing.assert_allclose(result.busy, [[4 * 3 * 0.5, 4 * 3 * 6.0]])
    assert result.makespan[0] >= result.busy.max()


@pytest.mark.parametrize(
    ("shape", "laid"),
    [
        ("loop", [[0, 3], [1, 4], [2, 5]]),
        ("v", [[0, 5], [1, 4], [2, 3]]),
    ],
)
def test_stages_follow_the_path(shape, laid):
    found = on_ranks(np.arange(6.0)[None], placement(shape, 3, 2))
    np.testing.assert_array_equal(found[0], laid)


def test_two_directions_hold_each_stage_twice():
    found = on_ranks(np.arange(4.0)[None], placement("bidirectional", 4, 2))
    np.testing.assert_array_equal(found[0], [[0, 3], [1, 2], [2, 1], [3, 0]])


def test_hop_is_latency_and_bytes_over_bandwidth():
    assert hop_time(4e9, 1e-5, 50e9) == pytest.approx(0.08001)
