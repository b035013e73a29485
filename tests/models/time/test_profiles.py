"""Profiles: every factor has a source, and bad ones are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from strategies import plain_problem
from time_cases import IDEAL, one

from shardproof.models import catalogue
from shardproof.models.errors import InputError
from shardproof.models.profiles import load_profile, profile_of
from shardproof.models.time import TimeModel

SHIPPED = ("ampere", "hopper", "blackwell", "cdna3", "cdna4")


@pytest.mark.parametrize("name", SHIPPED)
def test_every_factor_has_a_source(name: str) -> None:
    profile = load_profile(name)
    # Crowding is 0 unless a network was measured to lose bandwidth.
    plain = {"scale_up.crowding", "network.crowding"}
    assert set(profile.sources) == set(profile.factors()) - plain
    assert all(len(source) > 10 for source in profile.sources.values())
    assert not profile.calibrated


@pytest.mark.parametrize("name", catalogue.names("devices"))
def test_every_device_has_a_profile(name: str) -> None:
    profile = profile_of(catalogue.device(name))
    assert 0.2 <= profile.band <= 0.7
    low, high = profile.interval(10.0)
    assert low == pytest.approx(10 * (1 - profile.band))
    assert high == pytest.approx(10 * (1 + profile.band))


def test_unknown_device_takes_its_vendors_factors_with_a_wide_band() -> None:
    device = replace(catalogue.device("h100"), name="h999")
    stand_in, known = profile_of(device), load_profile("hopper")
    assert stand_in.gemm == known.gemm
    assert stand_in.band > known.band
    assert stand_in.name == "hopper-prior@1/generic"


def test_unknown_vendor_is_refused() -> None:
    device = replace(catalogue.device("h100"), name="tpu", vendor="google")
    with pytest.raises(InputError, match="vendor 'google'; known: nvidia, amd"):
        profile_of(device)


def test_bad_factors_are_refused() -> None:
    with pytest.raises(InputError, match=r"ceiling .* got 1\.2"):
        replace(IDEAL.gemm["bf16"], ceiling=1.2)
    with pytest.raises(InputError, match=r"forward .* got 0"):
        replace(IDEAL.attention, forward=0)
    with pytest.raises(InputError, match=r"launch .* got -1"):
        replace(IDEAL.scale_up, launch=-1)
    with pytest.raises(InputError, match=r"dp_tail .* at most 1, got 2"):
        replace(IDEAL.stack, dp_tail=2)
    with pytest.raises(InputError, match=r"sharding_overlap .* got 0\.5"):
        replace(IDEAL.stack, sharding_overlap=0.5)
    with pytest.raises(InputError, match=r"band .* got 1"):
        replace(IDEAL, band=1.0)


def test_a_format_without_matrix_units_is_refused() -> None:
    problem, _ = plain_problem()
    device = replace(problem.cluster.device, peak_flops={"fp16": 125e12})
    cluster = replace(problem.cluster, device=device)
    with pytest.raises(InputError, match="matrix unit for, got bf16 on plain"):
        replace(problem, cluster=cluster)


def test_a_format_without_factors_is_refused() -> None:
    with pytest.raises(InputError, match="no factors for mxfp4; it has bf16"):
        IDEAL.gemm_law("mxfp4")


def test_fp16_takes_the_time_of_bf16() -> None:
    problem, _ = plain_problem()
    peaks = {"bf16": 100e12, "fp16": 100e12}
    device = replace(problem.cluster.device, peak_flops=peaks)
    either = replace(problem, cluster=replace(problem.cluster, device=device))
    half = replace(either, training=replace(either.training, precision="fp16"))
    times = [TimeModel(p, IDEAL).step_times(one()) for p in (either, half)]
    assert times[0] == times[1]


def test_layouts_that_have_no_step_time_are_refused() -> None:
    problem, _ = plain_problem()
    model = TimeModel(problem, IDEAL)
    with pytest.raises(InputError, match="8 layers have no even split over pp=3"):
        model.project(one(pp=3, m=3))
    with pytest.raises(InputError, match=r"step times are known for .* got zb-h1"):
        model.project(one(pp=2, m=4, schedule=3))
