"""Megatron-core's own warm-up and schedule table, asked rank by rank.

Needs ``pip install megatron-core==0.16.1 torch einops``.
"""

from types import SimpleNamespace

import pytest

from shardproof.models.pipeline.interleaving import units, warm_up
from shardproof.models.pipeline.schedules import order

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def schedules():
    pytest.importorskip("torch", reason="megatron-core needs torch")
    return pytest.importorskip("megatron.core.pipeline_parallel.schedules")


def asked(schedules, p, rank, v, m, g, overlap=False):
    """Return the forward units that Megatron-core warms this rank up with."""
    group = SimpleNamespace(size=lambda: p, rank=lambda: rank)
    ranks = SimpleNamespace(pp_group=group, virtual_pipeline_model_parallel_size=v)
    answer = schedules.get_pp_rank_microbatches(
        m, v or 1, g, overlap_moe_expert_parallel_comm=overlap, p2p_communicator=ranks
    )
    return answer[2]


def forwards_before_first_backward(slots):
    return next(i for i, slot in enumerate(slots.tolist()) if slot[2] >= 0)


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("p", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("v", [1, 2, 3, 4])
def test_interleaved_warm_up(schedules, p, v, overlap):
    for g in (p, p + 1, 2 * p):
        for m in (g, 2 * g, 3 * g + p):
            ours = warm_up(p, v, m, g, int(overlap))
            theirs = [asked(schedules, p, r, v, m, g, overlap) for r in range(p)]
            assert ours.tolist() == theirs
            plan = order("interleaved", p, v, m, g, int(overlap))
            for rank, wanted in enumerate(theirs):
                # The steady state opens with a forward, if any forward is left.
                first = forwards_before_first_backward(plan.of_rank(rank))
                assert first == min(wanted + 1, m * v)


@pytest.mark.parametrize("p", [2, 3, 4, 8, 16])
def test_1f1b_warm_up(schedules, p):
    for m in (1, p - 1, p, 3 * p):
        plan = order("1f1b", p, 1, m)
        for rank in range(p):
            wanted = asked(schedules, p, rank, None, m, None)
            first = forwards_before_first_backward(plan.of_rank(rank))
            assert first == min(wanted + 1, m)


@pytest.mark.parametrize(("v", "m", "g"), [(2, 8, 4), (3, 9, 4), (4, 17, 5), (2, 4, 4)])
def test_schedule_table(schedules, v, m, g):
    chunk, micro = units(v, m, g)
    ours = list(zip(micro.tolist(), chunk.tolist(), strict=True))
    assert ours == schedules.get_schedule_table(m, v, g)
