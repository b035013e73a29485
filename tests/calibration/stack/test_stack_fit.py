"""Fits of a stack find the factors that made the steps, and keep priors otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shardproof.calibration.stack import (
    FACTORS,
    Sample,
    changed,
    fit,
    left_out,
    predict,
)
from shardproof.models.catalogue import architecture, cluster
from shardproof.models.layout import Layout
from shardproof.models.problem import Problem, Training
from shardproof.models.profiles import Profile, load_profile
from shardproof.models.time import Run

pytest.importorskip("scipy")
NAMES = ("stack.products", "stack.passes", "stack.step")
TRUE = {"stack.products": 0.9, "stack.passes": 0.8, "stack.step": 0.05}


def sample(model: str, mbs: int, seq_len: int) -> Sample:
    problem = Problem(
        architecture=architecture(model),
        cluster=cluster("1x8:h100"),
        training=Training(seq_len=seq_len, global_batch=64),
    )
    sizes = dict.fromkeys(("tp", "pp", "vpp", "cp", "ep", "etp"), 1)
    codes = dict.fromkeys(("sp", "schedule", "split", "recompute"), 0)
    layout = Layout(
        **sizes, **codes, mbs=mbs, sharding=1, dp=8, edp=8, m=64 // (8 * mbs)
    )
    return Sample(problem, layout, Run(), 1.0, model, "made")


def steps() -> list[Sample]:
    """Return steps that a profile of known factors makes, with no noise."""
    made = changed(load_profile("hopper"), TRUE)
    plain = [
        sample(model, mbs, seq_len)
        for model in ("llama-3.1-8b", "llama-3.2-1b", "llama-3.2-3b")
        for mbs in (1, 4)
        for seq_len in (512, 2048, 8192)
    ]
    times = predict(plain, lambda _: made)
    return [replace(s, seconds=float(t)) for s, t in zip(plain, times, strict=True)]


@pytest.fixture(scope="module")
def made() -> list[Sample]:
    return steps()


@pytest.fixture(scope="module")
def prior() -> Profile:
    return load_profile("hopper")


def test_a_fit_finds_the_factors_that_made_the_steps(
    made: list[Sample], prior: Profile
) -> None:
    found = fit(made, prior, NAMES)
    for name, value in TRUE.items():
        assert found[name] == pytest.approx(value, rel=0.1), name
    final = changed(prior, found)
    times = predict(made, lambda _: final)
    measured = np.array([s.seconds for s in made])
    assert np.abs(times / measured - 1).max() < 0.02


def test_what_samples_do_not_tell_stays_at_its_prior(
    made: list[Sample], prior: Profile
) -> None:
    # No layout has tensor parallelism, so that its exposure is not seen.
    found = fit(made, prior, (*NAMES, "stack.tp_backward"))
    assert found["stack.tp_backward"] == pytest.approx(prior.stack.tp_backward)


def test_one_wrong_row_does_not_move_a_fit(made: list[Sample], prior: Profile) -> None:
    wrong = [replace(made[0], seconds=3 * made[0].seconds), *made[1:]]
    found = fit(wrong, prior, NAMES)
    assert found["stack.products"] == pytest.approx(TRUE["stack.products"], rel=0.1)


def test_a_family_left_out_is_predicted_by_the_others(
    made: list[Sample], prior: Profile
) -> None:
    _, unseen = left_out(made, prior, NAMES)
    measured = np.array([s.seconds for s in made])
    assert np.median(np.abs(unseen / measured - 1)) < 0.03
    alone = [s for s in made if s.family == "llama-3.2-1b"]
    _, by_prior = left_out(alone, prior, NAMES)
    assert by_prior == pytest.approx(predict(alone, lambda _: prior))


@pytest.mark.parametrize("name", FACTORS)
def test_every_factor_is_one_of_a_profile_and_moves_within_its_bounds(
    name: str, prior: Profile
) -> None:
    assert name in prior.factors()
    factor = FACTORS[name]
    assert factor.least < factor.most
    value = (factor.least + factor.most) / 2
    assert changed(prior, {name: value}).factors()[name] == value
