"""Fits of whole-rank peaks: known laws are found again, and models are left out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardproof.calibration.peaks import Point, fit, ratios_left_out
from shardproof.calibration.peaks.fit import apply, band, profile

GIB = 2**30


def point(model: str, counted: float, measured: float, temporary: float = 0) -> Point:
    """Make a measured peak of some GiB."""
    return Point(
        kind="kind",
        model=model,
        counted=int(counted * GIB),
        temporary=int(temporary * GIB),
        measured=measured * GIB,
    )


@pytest.mark.parametrize("law", ["offset", "ratio", "blocks", "imbalance"])
def test_a_known_law_is_found_again(law: str) -> None:
    """Peaks made by a law give its values back."""
    values = {
        "offset": (1.5 * GIB,),
        "ratio": (1.07,),
        "blocks": (2.5, 0.25 * GIB),
        "imbalance": (1.2,),
    }[law]
    rng = np.random.default_rng(7)
    made = []
    for index in range(20):
        counted, temporary = (
            rng.integers(10 * GIB, 80 * GIB),
            rng.integers(GIB, 4 * GIB),
        )
        bare = Point(
            kind="kind",
            model=f"m{index % 4}",
            counted=int(counted),
            temporary=int(temporary),
            measured=0.0,
            routed=float(temporary),
        )
        made.append(
            Point(
                kind="kind",
                model=bare.model,
                counted=bare.counted,
                temporary=bare.temporary,
                measured=apply(law, values, bare),
                routed=bare.routed,
            )
        )
    assert fit(law, made) == pytest.approx(values, rel=1e-6)


def test_a_model_has_no_part_in_its_own_prediction() -> None:
    """An odd model is predicted by the others' ratio, and they by its own too."""
    points = [point("usual", 10, 10.5)] * 3 + [point("odd", 10, 20)]
    ratios = {p.model: r for p, r in ratios_left_out("ratio", points)}
    assert ratios["odd"] == pytest.approx(20 / 10.5)
    assert ratios["usual"] == pytest.approx(10.5 / 20)


def test_one_model_alone_is_predicted_by_itself() -> None:
    """Where there is no other model, its own rows are all there is."""
    points = [point("only", 10, 11), point("only", 20, 22)]
    assert [r for _, r in ratios_left_out("ratio", points)] == pytest.approx([1, 1])


def test_the_band_counts_what_falls_inside() -> None:
    """Of many ratios, the share below each quantile is its probability."""
    ratios = np.random.default_rng(3).normal(1, 0.05, 999)
    for probability, value in band(list(ratios)):
        assert (ratios <= value).mean() == pytest.approx(probability, abs=0.002)


@given(st.lists(st.floats(0.5, 2), min_size=1, max_size=60))
def test_a_band_rises_and_is_wide_where_there_are_few(ratios: list[float]) -> None:
    """Quantiles rise; where too few values are known, it reaches beyond them."""
    values = [value for _, value in band(ratios)]
    assert values == sorted(values)
    assert values[0] <= min(ratios) + 1e-4 and values[-1] >= max(ratios) - 1e-4


def test_a_profile_keeps_what_is_not_fitted() -> None:
    """Fitted constants replace theirs, others stay, bands are joined."""
    old = {"a": 1, "b": 2, "bands": {"x": 1}}
    assert profile(old, {"b": 3}, {"y": 2}) == {
        "a": 1,
        "b": 3,
        "bands": {"x": 1, "y": 2},
    }
