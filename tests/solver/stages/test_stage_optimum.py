"""Chosen stages against every stage plan there is, simulated one by one."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.stage_brute import fastest
from stage_cases import CODES, small_case

from shardproof.solver.stages import (
    best_stages,
    broken_layout_rules,
    skeleton,
    stages_of,
)


def check(seed: int, vpp: int) -> bool:
    """Compare one instance; return whether something fitted."""
    problem, layout = small_case(seed, vpp)
    at = skeleton(problem, layout, codes=CODES)
    expected = fastest(at)
    found = best_stages(at, seconds=60.0, workers=1)
    if expected is None:
        assert found is None
        return False
    assert found is not None
    assert found.step_time == pytest.approx(expected, rel=1e-9)
    assert found.bound <= expected * (1 + 1e-12)
    written = stages_of(found)
    assert max(written.per_rank) <= at.limit
    assert written.projection.step_time_s == pytest.approx(expected, rel=1e-9)
    assert not broken_layout_rules(problem, layout, written.pipeline_layout)
    return True


@pytest.mark.parametrize("vpp", [1, 2])
def test_a_few_small_instances_are_solved_to_the_optimum(vpp: int) -> None:
    assert sum(check(seed, vpp) for seed in range(5)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("vpp", [1, 2])
@pytest.mark.parametrize("start", range(0, 120, 20))
def test_small_instances_are_solved_to_the_optimum(vpp: int, start: int) -> None:
    assert sum(check(1_000 + seed, vpp) for seed in range(start, start + 20)) >= 10


def test_the_gap_is_that_of_value_and_bound() -> None:
    problem, layout = small_case(3, 1)
    at = skeleton(problem, layout, codes=CODES)
    found = best_stages(at, seconds=5.0, workers=1)
    assert found is not None
    assert found.gap == pytest.approx(1 - found.bound / found.step_time)
    assert float(at.times.of(found.counts[None])[0]) == found.step_time
    assert np.array_equal(found.counts.sum(axis=(0, 1))[-2:], [1, 1])
