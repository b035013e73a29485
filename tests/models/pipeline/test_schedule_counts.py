"""Counts of published schedules: what is held, and how long ranks idle.

Sources: Narayanan et al. 2021 (GPipe, 1F1B, interleaved), Qi et al. 2023 (ZB-H1,
ZB-H2, ZBV), Qi et al. 2024 (V-half, V-min), the DeepSeek-V3 report and the DualPipe
README. Idle is the step time less one rank's work; times are those of one chunk.
"""

from math import ceil

import numpy as np
import pytest

from shardproof.models.pipeline.held import held
from shardproof.models.pipeline.schedules import order
from shardproof.models.pipeline.sweep import simulate

RANKS = range(4, 17)
FEW = (4, 5, 6, 8, 11, 16)


def batches(p, least):
    """Choose numbers of micro-batches from the least to 64."""
    return sorted({least, least + 1, 2 * p, 3 * p + 1, 4 * p, 64} - set(range(least)))


def simulated(plan, f=1.0, b=1.0, w=1.0, pair=None):
    """Simulate equal stages; a full backward takes b + w."""
    one = np.ones((1, plan.pp, plan.chunks))
    pairs = None if pair is None else np.full((1, plan.pp, *(plan.chunks,) * 2), pair)
    if plan.split:
        return simulate(plan, f * one, b * one, w * one, pair=pairs)
    return simulate(plan, f * one, (b + w) * one)


def idle(plan, rank=0, **times):
    return simulated(plan, **times).idle[0, rank]


def peaks(plan):
    """Yield for each rank the most full states, most W-only ones beside them, both."""
    full, kept = held(plan)
    for r in range(plan.pp):
        part = slice(plan.starts[r], plan.starts[r + 1])
        whole, rest = full[part].sum(axis=1), kept[part].sum(axis=1)
        beside = rest[whole == whole.max()].max()
        yield whole.max(), beside, (whole + rest).max()


@pytest.mark.parametrize("p", RANKS)
@pytest.mark.parametrize("times", [(1, 1, 1), (1, 2, 0.5), (2, 1, 1)])
def test_gpipe_and_1f1b(p, times):
    f, b, w = times
    for m in (1, 2, p - 1, *batches(p, p)):
        flush, turns = order("gpipe", p, 1, m), order("1f1b", p, 1, m)
        for plan in (flush, turns):
            assert idle(plan, f=f, b=b, w=w) == pytest.approx((p - 1) * (f + b + w))
        assert [full for full, *_ in peaks(flush)] == [m] * p
        assert [full for full, *_ in peaks(turns)] == [min(p - i, m) for i in range(p)]


@pytest.mark.parametrize("p", RANKS)
@pytest.mark.parametrize("v", [2, 3, 4])
def test_interleaved(p, v):
    for m in (p, 2 * p, 4 * p):
        for extra in (0, 1):
            plan = order("interleaved", p, v, m, p, extra)
            for i, (full, _, _) in enumerate(peaks(plan)):
                warm_up = min(2 * (p - i - 1) + (v - 1) * p + extra, m * v)
                assert full == min(warm_up + 1, m * v)
        plan = order("interleaved", p, v, m)
        # (p - 1)(F + BW) / v of a rank is p - 1 times that of a chunk.
        assert idle(plan, f=1, b=2, w=0.5) == pytest.approx((p - 1) * 3.5)


@pytest.mark.parametrize("p", RANKS)
def test_interleaved_with_a_remainder_of_at_least_pp(p):
    group = p + 2
    for rest in (p, p + 1):
        plan = order("interleaved", p, 2, 2 * group + rest, group)
        assert idle(plan) == pytest.approx((p - 1) * 3)


def test_interleaved_with_a_short_remainder_idles_more():
    """m 9, p 4, group 4: 20 units instead of 9."""
    assert idle(order("interleaved", 4, 2, 9, 4), f=1, b=1, w=1) == pytest.approx(20)


@pytest.mark.parametrize("p", RANKS)
def test_zb_h1(p):
    for m in batches(p, p):
        plan = order("zb-h1", p, 1, m)
        assert list(peaks(plan)) == [(p - i, i, p) for i in range(p)]
        for f, b, w in ((1, 1, 1), (1, 1.2, 0.8), (2, 3, 1)):
            wanted = (p - 1) * (f + b - w)
            assert idle(plan, f=f, b=b, w=w) == pytest.approx(wanted)


@pytest.mark.parametrize("p", RANKS)
def test_zb_h2(p):
    for m in batches(p, 2 * p - 1):
        plan = order("zb-h2", p, 1, m)
        held_at_peak = [(2 * p - 1 - 2 * i, 2 * i, 2 * p - 1) for i in range(p)]
        assert list(peaks(plan)) == held_at_peak
        for f, b, w in ((1, 1, 1), (1, 1.2, 0.8), (2, 3, 1.5)):
            assert idle(plan, f=f, b=b, w=w) == pytest.approx((p - 1) * f)


@pytest.mark.parametrize("p", RANKS)
def test_zbv(p):
    for m in batches(p, 2 * p - 1):
        plan = order("zbv", p, 2, m)
        assert idle(plan) == pytest.approx(p - 1)
        if m >= 2 * p:
            assert [joint for *_, joint in peaks(plan)] == [2 * p] * p


@pytest.mark.parametrize("p", FEW)
def test_v_half(p):
    for m in (2 * p, 3 * p + 1, 64):
        plan = order("v-half", p, 2, m)
        wanted = 3 * p - 7 if p % 2 == 0 else 3 * p - 4
        assert idle(plan) == pytest.approx(wanted)
        assert max(joint for *_, joint in peaks(plan)) == (
            p + 2 if p % 2 == 0 else p + 1
        )


@pytest.mark.parametrize("p", FEW)
def test_v_min(p):
    for m in (2 * p, 3 * p + 1, 64):
        plan = order("v-min", p, 2, m)
        wanted = 4 * p - {1: 5, 2: 6, 0: 7}[p % 3]
        assert idle(plan) == pytest.approx(wanted)
        assert max(joint for *_, joint in peaks(plan)) == 2 * ceil((p + 2) / 3)


@pytest.mark.slow
@pytest.mark.parametrize("p", RANKS)
@pytest.mark.parametrize("name", ["v-half", "v-min"])
def test_v_schedules_for_every_p_and_many_m(name, p):
    for m in range(2 * p, 65, 4):
        plan = order(name, p, 2, m)
        if name == "v-half":
            wanted = 3 * p - 7 if p % 2 == 0 else 3 * p - 4
            chunks = p + 2 if p % 2 == 0 else p + 1
        else:
            wanted = 4 * p - {1: 5, 2: 6, 0: 7}[p % 3]
            chunks = 2 * ceil((p + 2) / 3)
        assert idle(plan) == pytest.approx(wanted)
        assert max(joint for *_, joint in peaks(plan)) == chunks


@pytest.mark.parametrize("p", range(4, 17, 2))
@pytest.mark.parametrize("pair", [3.0, 2.5, 2.0])
def test_dualpipe(p, pair):
    """Idle of the middle ranks, which overlap least at the turn."""
    for m in (2 * p, 2 * p + 2, 64):
        plan = order("dualpipe", p, 1, m)
        wanted = (p / 2 - 1) * (pair + 1 - 2)
        assert idle(plan, p // 2, pair=pair) == pytest.approx(wanted)
        assert [joint for *_, joint in peaks(plan)] == [p + 1] * p


@pytest.mark.parametrize("p", RANKS)
@pytest.mark.parametrize("pair", [3.0, 2.5, 2.0])
def test_dualpipe_v(p, pair):
    """(p - 1) / 2 times F&BW + B - 2W of a rank is p - 1 times that of a chunk."""
    for m in (2 * p, 2 * p + 1, 64):
        plan = order("dualpipev", p, 2, m)
        assert idle(plan, p - 1, pair=pair) == pytest.approx((p - 1) * (pair + 1 - 2))
        assert [joint for *_, joint in peaks(plan)] == [2 * p + 1] * p


def test_published_ideal_idle_of_a_500b_moe_model():
    """16 ranks, 16 micro-batches: 48.4, 23.8, 13.5 % at v = 1, 3, 6.

    Source: AMD's MoE 500B runs on MI300X (pp 16, ep 8).
    """
    shares = []
    for v in (1, 3, 6):
        plan = order("interleaved" if v > 1 else "1f1b", 16, v, 16)
        shares.append(simulated(plan).bubble[0])
    assert [round(100 * share, 1) for share in shares] == [48.4, 23.8, 13.5]
