"""Laws that step times keep on any model, machine, profile and layout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from time_cases import Columns, cases, faster

from shardproof.models.layout import RECOMPUTE_FULL
from shardproof.models.problem import Problem
from shardproof.models.profiles import Profile
from shardproof.models.time import PARTS, TimeModel
from shardproof.models.time.work import LAYER_PARTS

Case = tuple[Problem, Profile, Columns]
# A case is a seed for the most part, which shrinking makes no simpler.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
MANY = settings(max_examples=20, deadline=None, phases=PHASES)
#: Relative difference that sums in another order may make.
ROUNDING = 1e-9


@MANY
@given(cases())
def test_bound_is_never_above_simulation(case: Case) -> None:
    problem, profile, columns = case
    model = TimeModel(problem, profile)
    exact = model.refine(columns).step_time
    # The last bits of sums in another order; Scores.bounds takes them off.
    assert (model.step_times(columns) <= exact * (1 + 1e-12)).all()


@MANY
@given(cases())
def test_parts_sum_to_the_step(case: Case) -> None:
    problem, profile, columns = case
    model = TimeModel(problem, profile)
    for found in (model.project(columns), model.refine(columns)):
        assert tuple(found.breakdown) == PARTS
        total = sum(found.breakdown.values())
        assert np.allclose(total, found.step_time, rtol=ROUNDING, atol=0)
        assert all((seconds >= 0).all() for seconds in found.breakdown.values())
        assert ((found.bubble_fraction >= 0) & (found.bubble_fraction < 1)).all()


@MANY
@given(cases())
def test_batch_of_one_has_the_same_bits(case: Case) -> None:
    problem, profile, columns = case
    model = TimeModel(problem, profile)
    together, simulated = model.project(columns), model.refine(columns)
    fast = model.step_times(columns)
    for i in range(0, len(fast), 7):
        row = {name: column[i : i + 1] for name, column in columns.items()}
        alone = model.project(row)
        assert alone.step_time[0] == together.step_time[i] == fast[i]
        assert alone.mfu[0] == together.mfu[i]
        for part, seconds in alone.breakdown.items():
            assert seconds[0] == together.breakdown[part][i], part
        assert model.refine(row).step_time[0] == simulated.step_time[i]


@MANY
@given(cases(), st.sampled_from(["flops", "hbm", "scale-up", "network"]))
def test_better_hardware_never_slows(case: Case, what: str) -> None:
    problem, profile, columns = case
    better = replace(problem, cluster=faster(problem.cluster, what, 1.7))
    slow = TimeModel(problem, profile)
    fast = TimeModel(better, profile)
    for method in ("project", "refine"):
        before = getattr(slow, method)(columns).step_time
        after = getattr(fast, method)(columns).step_time
        assert (after <= before * (1 + ROUNDING)).all()


@MANY
@given(cases())
def test_times_have_the_unit_of_time(case: Case) -> None:
    """Every rate doubled and every duration halved halves every step."""
    problem, profile, columns = case
    cluster = problem.cluster
    for what in ("flops", "hbm", "scale-up", "network"):
        cluster = faster(cluster, what, 2.0)
    fabric = cluster.fabric
    fabric = replace(
        fabric,
        scale_up_latency=fabric.scale_up_latency / 2,
        nic_latency=fabric.nic_latency / 2,
    )
    stack = profile.stack
    halved = replace(
        profile,
        scale_up=replace(profile.scale_up, launch=profile.scale_up.launch / 2),
        network=replace(profile.network, launch=profile.network.launch / 2),
        stack=replace(
            stack,
            host_layer=stack.host_layer / 2,
            host_moe=stack.host_moe / 2,
            step=stack.step / 2,
        ),
    )
    twice = replace(problem, cluster=replace(cluster, fabric=fabric))
    before = TimeModel(problem, profile).refine(columns)
    after = TimeModel(twice, halved).refine(columns)
    assert np.allclose(2 * after.step_time, before.step_time, rtol=ROUNDING, atol=0)
    assert np.allclose(after.mfu, before.mfu, rtol=ROUNDING, atol=0)


@MANY
@given(cases())
def test_doubling_layers_doubles_their_time(case: Case) -> None:
    problem, profile, columns = case
    alone = {name: column.copy() for name, column in columns.items()}
    alone["pp"][:], alone["vpp"][:], alone["schedule"][:], alone["split"][:] = (
        1,
        1,
        0,
        0,
    )
    arch = problem.architecture
    # Layers two by two, so that kinds stay as many as they were.
    twice = replace(arch, layers=tuple(x for x in arch.layers for _ in "ab"))
    # With zero-3 all traffic of the data-parallel ranks belongs to layers.
    alone["sharding"][:] = 3
    once = TimeModel(problem, profile).project(alone).breakdown
    double = TimeModel(replace(problem, architecture=twice), profile).project(alone)
    for part in LAYER_PARTS:
        assert np.allclose(double.breakdown[part], 2 * once[part], rtol=ROUNDING), part
    for part in ("head", "mtp", "step"):
        assert (double.breakdown[part] == once[part]).all(), part


@MANY
@given(cases())
def test_recomputing_more_takes_longer(case: Case) -> None:
    problem, profile, columns = case
    model = TimeModel(problem, profile)

    def times(code: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        chosen = {**columns, "recompute": np.full_like(columns["tp"], code)}
        return model.step_times(chosen)

    none, some, more, full = (times(c) for c in (0, 1, 3, RECOMPUTE_FULL))
    slack = 1 + ROUNDING
    assert (none <= some * slack).all()
    assert (some <= more * slack).all()
    assert (more <= full * slack).all()


@MANY
@given(cases())
def test_more_micro_batches_take_longer(case: Case) -> None:
    problem, profile, columns = case
    model = TimeModel(problem, profile)
    more = {**columns, "m": columns["m"] + columns["pp"]}
    assert (model.step_times(more) > model.step_times(columns)).all()


@pytest.mark.parametrize("name", ["tp_forward", "ep_exposed", "dp_tail", "step"])
@settings(max_examples=8, deadline=None, phases=PHASES)
@given(case=cases())
def test_exposing_more_never_speeds_up(name: str, case: Case) -> None:
    problem, profile, columns = case
    worse = replace(profile, stack=replace(profile.stack, **{name: 1.0}))
    before = TimeModel(problem, profile).step_times(columns)
    after = TimeModel(problem, worse).step_times(columns)
    assert (after >= before * (1 - ROUNDING)).all()
