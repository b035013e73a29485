"""Laws of what a run adds: formats, attention kernels, adapters, capacity, stacks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from time_cases import IDEAL, one

from shardproof.models.catalogue import architecture, cluster
from shardproof.models.errors import InputError
from shardproof.models.layout import SHARDINGS
from shardproof.models.problem import Problem, Training
from shardproof.models.profiles import load_profile
from shardproof.models.time import PARTS, Run, TimeModel
from shardproof.models.time.formats import product_format

HOPPER = load_profile("hopper")


def problem(name: str = "llama-3.1-8b", machine: str = "2x8:h100") -> Problem:
    return Problem(
        architecture=architecture(name),
        cluster=cluster(machine),
        training=Training(seq_len=4096, global_batch=64),
    )


LAYOUT = one(tp=2, dp=8, edp=16, m=8, sp=1, sharding=1)
MIXED = one(dp=16, ep=8, edp=2, m=4, sharding=1)


def seconds(run: Run, name: str = "llama-3.1-8b", profile=HOPPER) -> float:  # type: ignore[no-untyped-def]
    columns = MIXED if "mixtral" in name else LAYOUT
    return float(TimeModel(problem(name), profile, run=run).step_times(columns)[0])


def test_eight_bits_are_faster_and_their_casts_cost() -> None:
    wide, small = seconds(Run()), seconds(Run(recipe="fp8"))
    costly = replace(HOPPER, stack=replace(HOPPER.stack, cast=3.0))
    assert small < wide
    assert seconds(Run(recipe="fp8"), profile=costly) > small
    assert seconds(Run(), profile=costly) == wide


def test_a_format_that_a_device_lacks_runs_in_the_next_wider_one() -> None:
    ampere = cluster("1x8:a100-80").device
    law = product_format(ampere, load_profile("ampere"), "nvfp4")
    assert law.peak == ampere.peak_flops["bf16"]
    assert law.width == 2
    with pytest.raises(InputError, match="format of matrix products"):
        product_format(ampere, HOPPER, "int3")


def test_ideal_eight_bits_halve_the_products() -> None:
    # Twice the peak, nothing else: layers' products take half as long.
    machine = problem()
    found = []
    for recipe in ("", "fp8"):
        profile = replace(IDEAL, stack=replace(IDEAL.stack, cast=0.0))
        model = TimeModel(machine, profile, run=Run(recipe=recipe))
        found.append(float(model.project(LAYOUT).breakdown["gemm"][0]))
    peaks = machine.cluster.device.peak_flops
    assert found[0] / found[1] == pytest.approx(peaks["fp8"] / peaks["bf16"], rel=0.02)


def test_adapters_have_no_weight_gradients_reduction_or_optimizer() -> None:
    plain = TimeModel(problem(), HOPPER).project(LAYOUT)
    frozen = TimeModel(problem(), HOPPER, run=Run(workload="lora")).project(LAYOUT)
    # Forward and input gradients: two of three passes.
    share = frozen.breakdown["gemm"][0] / plain.breakdown["gemm"][0]
    assert share == pytest.approx(2 / 3, rel=0.01)
    assert frozen.breakdown["optimizer"][0] == 0
    assert frozen.breakdown["dp"][0] == 0


def test_unfused_attention_is_slower_the_longer_the_sequence() -> None:
    ratios = []
    for length in (1024, 4096, 16384):
        longer = replace(problem(), training=Training(seq_len=length, global_batch=64))
        times = [
            TimeModel(longer, HOPPER, run=Run(attention=kind)).step_times(LAYOUT)[0]
            for kind in ("", "unfused")
        ]
        ratios.append(times[1] / times[0])
    assert 1 < ratios[0] < ratios[1] < ratios[2]


@given(st.floats(1.0, 4.0), st.floats(1.0, 2.0))
@settings(max_examples=20, deadline=None)
def test_more_capacity_never_speeds_experts_up(factor: float, more: float) -> None:
    low = seconds(Run(capacity_factor=factor), "mixtral-8x7b")
    high = seconds(Run(capacity_factor=factor * more), "mixtral-8x7b")
    assert high >= low
    assert seconds(Run(imbalance=factor), "mixtral-8x7b") == low


def test_a_capacity_of_one_is_an_even_spread() -> None:
    assert seconds(Run(capacity_factor=1), "mixtral-8x7b") == seconds(
        Run(), "mixtral-8x7b"
    )


def test_overlap_never_slows() -> None:
    assert seconds(Run(tp_overlap=True)) < seconds(Run())
    ahead = seconds(Run(ep_overlap=True), "mixtral-8x7b")
    assert ahead < seconds(Run(), "mixtral-8x7b")


def test_stragglers_add_a_share_for_each_doubling_of_nodes() -> None:
    slow = replace(HOPPER, stack=replace(HOPPER.stack, stragglers=0.01, step=0.0))
    plain = replace(HOPPER, stack=replace(HOPPER.stack, stragglers=0.0, step=0.0))
    ratio = seconds(Run(), profile=slow) / seconds(Run(), profile=plain)
    assert ratio == pytest.approx(1.01)  # two nodes: one doubling


@pytest.mark.parametrize("run", [Run(recipe="fp8"), Run(workload="lora")])
@pytest.mark.parametrize("sharding", SHARDINGS)
def test_parts_sum_to_the_step(run: Run, sharding: str) -> None:
    columns = LAYOUT | {"sharding": np.array([SHARDINGS.index(sharding)])}
    found = TimeModel(problem(), HOPPER, run=run).refine(columns)
    parts = sum(found.breakdown[name][0] for name in PARTS)
    assert parts == pytest.approx(found.step_time[0])


def test_what_a_run_may_be() -> None:
    with pytest.raises(InputError, match="workload"):
        Run(workload="distil")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="imbalance"):
        Run(imbalance=0.5)
