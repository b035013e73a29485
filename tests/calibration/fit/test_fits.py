"""Fits recover a known law, follow a known surface, and say how far they miss."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardproof.calibration.fit.bands import coverage, fit_band
from shardproof.calibration.fit.forms import FORMS, forms_of, size_groups
from shardproof.calibration.fit.judged import document_of, judge
from shardproof.calibration.fit.kernels import Form, fit_kernel
from shardproof.calibration.fit.left_out import boxes, by_fold, by_region
from shardproof.calibration.fit.monotone import rising
from shardproof.calibration.fit.parameters import fit_parameters
from shardproof.calibration.fit.penalised import design, solve
from shardproof.calibration.fit.ship import fit_layers
from shardproof.calibration.ingest.read import Imported
from shardproof.calibration.rows import Rows
from shardproof.models.profiles.layer_file import text_of
from shardproof.models.profiles.surfaces import LAWS, kernel_of
from shardproof.models.profiles.surfaces.law import Machine

MACHINE = Machine(flops=1e15, bandwidth=3e12, units=132)
SIDES = 2.0 ** np.arange(7, 15)
SMOOTH = LAWS["gemm-smooth"]
SOURCE = {"source": "a test", "version": "1", "licence": "none", "table": "made"}


def table(
    parameters: tuple[float, ...] = (0.7, 300.0, 0.8, 4e-6, 2.0),
    noise: float = 0.0,
    bump: float = 0.0,
) -> Rows:
    """Make a table of cubes' sides under the smooth law, with a bump and noise."""
    m, n, k = (axis.ravel() for axis in np.meshgrid(SIDES, SIDES, SIDES, indexing="ij"))
    sizes = {"m": m, "n": n, "k": k}
    time = SMOOTH.seconds(np.array(parameters), sizes, MACHINE)
    random = np.random.default_rng(7)
    wave = bump * np.sin(np.log2(m)) * np.cos(np.log2(n) / 2)
    time = time * np.exp(wave + noise * random.normal(size=len(m)))
    return Rows(
        kernel="gemm.bf16", device="h100", sizes=sizes, seconds=time, source=SOURCE
    )


def test_a_known_law_is_recovered() -> None:
    known = (0.7, 300.0, 0.8, 4e-6, 2.0)
    found = fit_parameters(SMOOTH, MACHINE, table(known))
    assert found == pytest.approx(known, rel=0.02)


def test_a_prior_rules_where_rows_say_nothing() -> None:
    # Compute-bound shapes cannot tell the memory's share of its peak.
    large = table().at(
        np.flatnonzero(np.all([v >= 8192 for v in table().sizes.values()], axis=0))
    )
    found = fit_parameters(SMOOTH, MACHINE, large)
    prior = {p.name: p.prior for p in SMOOTH.parameters}
    assert found[2] == pytest.approx(prior["memory"], rel=0.03)


def test_a_few_wild_rows_do_not_move_the_law() -> None:
    rows = table()
    wild = np.array(rows.seconds)
    wild[::25] *= 5
    spoiled = Rows(kernel="gemm.bf16", device="h100", sizes=rows.sizes, seconds=wild)
    found = fit_parameters(SMOOTH, MACHINE, spoiled)
    assert found[:2] == pytest.approx((0.7, 300.0), rel=0.08)


FORM = Form(
    law=SMOOTH,
    knots=dict.fromkeys("mnk", tuple(SIDES)),
    prices={"m": 0.1, "n": 0.1, "k": 1.0},
)


def test_a_surface_follows_what_the_law_cannot() -> None:
    rows = table(bump=0.3)
    for form, most in ((Form(law=SMOOTH), np.inf), (FORM, 0.02)):
        kernel = fit_kernel(form, MACHINE, rows)
        missed = np.abs(np.log(kernel.seconds(**rows.sizes) / rows.seconds))
        assert np.median(missed) < most
    law_alone = by_fold(Form(law=SMOOTH), MACHINE, rows, 4, 0).errors
    with_surface = by_fold(FORM, MACHINE, rows, 4, 0).errors
    assert np.median(with_surface) < np.median(law_alone) / 3


def test_what_is_left_out_is_not_seen() -> None:
    rows = table(noise=0.01)
    fold = by_fold(FORM, MACHINE, rows, 4, 0)
    spoiled = np.array(rows.seconds)
    spoiled[fold.rows] *= 3
    again = by_fold(
        FORM,
        MACHINE,
        Rows(kernel="gemm.bf16", device="h100", sizes=rows.sizes, seconds=spoiled),
        4,
        0,
    )
    # The predictions stay, so that every miss grows by log 3.
    assert again.misses - fold.misses == pytest.approx(np.log(3), abs=1e-9)


def test_twins_of_a_shape_are_left_out_together() -> None:
    rows = table()
    twice = Rows(
        kernel="gemm.bf16",
        device="h100",
        sizes={name: np.repeat(v, 2) for name, v in rows.sizes.items()},
        seconds=np.repeat(rows.seconds, 2),
    )
    left = set(by_fold(Form(law=SMOOTH), MACHINE, twice, 4, 1).rows)
    assert all((row ^ 1) in left for row in left)


def test_regions_are_holes_inside_the_table() -> None:
    rows = table()
    out = boxes(FORM, rows)
    assert 0 < out.sum() < len(rows) / 2
    for values in rows.sizes.values():
        assert values[out].min() > values.min()
        assert values[out].max() < values.max()
    assert len(by_region(FORM, MACHINE, rows).rows) == out.sum()


def test_interpolation_weights_sum_to_one() -> None:
    points = [np.array([0.5, 1.5, 9.0]), np.array([0.1, 0.9, 0.5])]
    knots = [np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0])]
    weights = design(points, knots)
    assert np.asarray(weights.sum(axis=1)).ravel() == pytest.approx(1)
    assert (weights.data >= 0).all()


def test_knots_without_points_follow_a_line() -> None:
    x = np.array([0.0, 1.0, 3.0, 4.0])
    knots = [np.array([0.0, 1.0, 2.0, 3.0, 4.0])]
    values, _ = solve([x], 0.1 * x, knots, [0.01])
    assert values == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4], abs=0.01)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=6))
def test_the_rising_sequence_is_the_nearest_one(line: list[int]) -> None:
    values = np.array(line, dtype=float)
    found = rising(values[None], 1)[0]
    assert (np.diff(found) >= 0).all()
    # The nearest rising sequence is constant on blocks, at the mean of each block.
    best = np.inf
    for cuts in product((0, 1), repeat=len(values) - 1):
        block = np.concatenate([[0], np.cumsum(cuts)]).astype(int)
        means = np.bincount(block, values) / np.bincount(block)
        if (np.diff(means) >= 0).all():
            best = min(best, float(((means[block] - values) ** 2).sum()))
    assert ((found - values) ** 2).sum() == pytest.approx(best, abs=1e-9)


def test_bands_hold_nine_rows_in_ten_where_noise_differs_by_region() -> None:
    random = np.random.default_rng(3)
    x = {
        "m": 2.0 ** random.uniform(0, 15, 8000),
        "n": 2.0 ** random.uniform(5, 15, 8000),
    }
    spread = np.where(x["m"] > 1000, 0.1, 0.01)
    misses = spread * random.normal(size=8000)
    judged = coverage(x, misses)
    assert 87 <= judged["coverage"] <= 93
    band = fit_band(x, misses)
    quiet, loud = ({"m": np.array([m]), "n": np.array([500.0])} for m in (30.0, 9000.0))
    # 1.645 standard deviations hold 90 % of normal misses.
    assert band.at(quiet)[0] == pytest.approx(0.0165, rel=0.35)
    assert band.at(loud)[0] == pytest.approx(0.165, rel=0.35)


def test_the_form_is_the_one_that_predicts_best() -> None:
    judged = judge(table(bump=0.3, noise=0.01), MACHINE)
    errors = judged.left_out["forms"]
    assert errors[judged.left_out["form"]] == min(errors.values())
    assert "surface" in judged.left_out["form"]
    again = kernel_of(json.loads(json.dumps(document_of(judged.kernel))))
    sizes = {"m": 3000.0, "n": 700.0, "k": 2000.0}
    assert again.seconds(**sizes) == pytest.approx(judged.kernel.seconds(**sizes))
    assert again.half_width(**sizes) == judged.kernel.half_width(**sizes)


def test_a_fit_repeats_bit_for_bit_whatever_the_order_of_the_rows() -> None:
    rows = table(bump=0.2, noise=0.02)
    shuffled = rows.at(np.random.default_rng(0).permutation(len(rows)))
    texts = [
        text_of(fit_layers([Imported("made", (part,))])[0]) for part in (rows, shuffled)
    ]
    assert texts[0] == texts[1]


def test_every_kernel_has_forms_and_size_classes() -> None:
    for start in FORMS:
        name = start if not start.endswith(".") else f"{start}x"
        assert forms_of(name) == FORMS[start]
    groups = size_groups(table())
    assert sum(int(mask.sum()) for mask in groups.values()) == len(table())
