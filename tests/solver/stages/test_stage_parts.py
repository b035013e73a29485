"""Bytes, times, cuts and floors of stages, each against what it must agree with."""

from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from stage_cases import CODES, small_case

from shardproof.models.errors import InputError
from shardproof.models.layout import RECOMPUTE_FULL, Layout
from shardproof.models.pipeline.steady import step_times
from shardproof.models.stages import stages
from shardproof.solver.scoring import Scores
from shardproof.solver.single import domains_of, rank_peaks
from shardproof.solver.stages import Skeleton, counts_of, skeleton
from shardproof.solver.stages.cuts import closed_cuts, critical_cuts
from shardproof.solver.stages.ranks import Ranks
from shardproof.solver.stages.result import letters

SEEDS = [(seed, vpp) for seed in range(6) for vpp in (1, 2)]


def uniform(at: Skeleton, code: int) -> tuple[Layout, np.ndarray] | None:
    """Return a split family's stages, every layer at one level."""
    layout = replace(at.layout, recompute=code)
    arch = at.problem.architecture
    families = (s for s in (0, 1) if stages(arch, s, layout.pp, layout.vpp))
    layout = replace(layout, split=next(families))
    found = stages(arch, layout.split, layout.pp, layout.vpp)
    sizes = [sum(found[c % layout.pp][c // layout.pp].layers) for c in range(at.chunks)]
    layers = arch.num_layers + arch.mtp_layers
    text = letters(sizes, arch.mtp_layers)
    try:
        return layout, counts_of(at, text, [code] * layers)
    except InputError:
        return None  # a level that another one of this kind makes needless


@pytest.mark.parametrize(("seed", "vpp"), SEEDS)
@pytest.mark.parametrize("code", [0, RECOMPUTE_FULL])
def test_equal_levels_cost_what_the_engine_and_the_ledger_say(
    seed: int, vpp: int, code: int
) -> None:
    problem, layout = small_case(seed, vpp)
    at = skeleton(problem, layout, codes=CODES)
    written = uniform(at, code)
    if written is None:
        return
    plain, counts = written
    rows = counts[..., :-2].tolist()
    peaks = tuple(at.memory.peak(r, row) for r, row in enumerate(rows))
    assert peaks == rank_peaks(domains_of(problem, plain), plain)
    expected = Scores(problem).simulated([plain])[0]
    # The engine lets the host launch the ends again where layers are recomputed.
    loose = 1e-12 if code == 0 else 3e-2
    assert float(at.times.of(counts[None])[0]) == pytest.approx(
        expected.step_time_s, rel=loose
    )
    shown = at.times.projection(counts)
    assert float(shown.step_time[0]) == pytest.approx(
        float(at.times.of(counts[None])[0]), rel=1e-12
    )


@pytest.mark.parametrize(("seed", "vpp"), SEEDS)
def test_no_cut_is_above_the_simulation_and_critical_ones_meet_it(
    seed: int, vpp: int
) -> None:
    problem, layout = small_case(seed, vpp)
    at = skeleton(problem, layout, codes=CODES)
    draw = np.random.default_rng(seed)
    shape = (200, layout.pp, layout.vpp)
    ahead, back = draw.uniform(0.5, 2, shape), draw.uniform(1, 4, shape)
    hop = at.times.hop
    simulated = step_times(at.times.schedule, ahead, back, layout.m, hop)
    closed, critical = closed_cuts(at.times), critical_cuts(at.times, ahead, back)
    for cut in (*closed, *critical):
        assert (cut.time(ahead, back, hop) <= simulated * (1 + 1e-12)).all()
    best = np.max([cut.time(ahead, back, hop) for cut in critical], axis=0)
    assert best == pytest.approx(simulated, rel=1e-12)


@pytest.mark.parametrize(("seed", "vpp"), SEEDS)
def test_a_floor_is_the_least_time_that_fits(seed: int, vpp: int) -> None:
    problem, layout = small_case(seed, vpp)
    at = skeleton(problem, layout, codes=CODES)
    ranks, mtp = Ranks(at), problem.architecture.mtp_layers
    for rank in range(layout.pp):
        last = rank == layout.pp - 1
        content = [(*(1,) * at.kinds, 0)] * vpp
        content[-1] = (*content[-1][:-1], mtp * last)
        expected = least(at, rank, content)
        assert ranks.floor(rank, tuple(content)) == pytest.approx(expected, rel=1e-12)
        filled = ranks.fill(rank, tuple(content))
        assert (filled is None) == (expected == np.inf)
        if filled is not None:
            assert at.memory.peak(rank, filled) <= at.limit
            spent = np.array(filled).sum(axis=0) @ at.times.backward[:-2]
            assert float(spent) == pytest.approx(expected, rel=1e-12)


def least(at: Skeleton, rank: int, content: list[tuple[int, ...]]) -> float:
    """Try every level of every layer of a rank."""
    per_chunk = []
    for chunk in content:
        groups = [
            list(combinations_with_replacement(at.levels[k], n))
            for k, n in enumerate(chunk)
            if n
        ]
        per_chunk.append([sum(picked, ()) for picked in product(*groups)])
    best = np.inf
    for picked in product(*per_chunk):
        rows = [[c.count(i) for i in range(len(at.items))] for c in picked]
        if at.memory.peak(rank, rows) <= at.limit:
            time = sum(at.times.backward[i] for c in picked for i in c)
            best = min(best, float(time))
    return best


def test_letters_are_written_short_and_read_back() -> None:
    assert letters((0, 2, 2, 2, 1), 1) == "E|(tt|)*3tmL"
    assert letters((3, 3), 0) == "Ettt|tttL"


def test_stages_that_do_not_match_are_refused() -> None:
    problem, layout = small_case(0, 1)
    at = skeleton(problem, layout, codes=CODES)
    layers = problem.architecture.num_layers + problem.architecture.mtp_layers
    with pytest.raises(InputError, match="stages"):
        counts_of(at, "Et|tL", [0] * layers)


def test_more_chunks_than_layers_are_refused() -> None:
    problem, layout = small_case(0, 1)
    with pytest.raises(InputError, match="chunks"):
        skeleton(problem, replace(layout, pp=8), codes=CODES)


def test_schedules_without_bounds_are_refused() -> None:
    problem, layout = small_case(0, 1)
    with pytest.raises(InputError, match="schedules"):
        skeleton(problem, replace(layout, schedule=3), codes=CODES)
