"""Grids and kernels: exact where they must be, refused where nothing was measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardproof.models.errors import InputError
from shardproof.models.profiles.surfaces import LAWS, Kernel, kernel_of
from shardproof.models.profiles.surfaces.grid import STEP, Grid, grid_of
from shardproof.models.profiles.surfaces.law import Machine, either

AXES = {
    "x": np.array([1.0, 2.0, 8.0]),
    "y": np.array([10.0, 1000.0]),
    "z": np.array([3.0]),
}
MACHINE = Machine(flops=1e15, bandwidth=3e12, units=132)


def grid(function) -> Grid:  # type: ignore[no-untyped-def]
    """Fill a grid with a function of the logarithms of x and y."""
    x, y, _ = np.meshgrid(*(np.log(k) for k in AXES.values()), indexing="ij")
    return Grid(AXES, function(x, y))


def smooth(**changes: object) -> Kernel:
    """Make a kernel of the smooth law on a machine without start-up time."""
    law = LAWS["gemm-smooth"]
    kernel = Kernel(
        law=law,
        machine=MACHINE,
        parameters=np.array([0.75, 256.0, 1.0, 1e-12, 60.0]),
        domain={name: (32.0, 65536.0) for name in law.sizes},
    )
    return replace(kernel, **changes)


@given(
    st.floats(1.0, 8.0),
    st.floats(10.0, 1000.0),
    st.tuples(*(st.floats(-2, 2) for _ in range(4))),
)
def test_a_multilinear_function_is_met_between_the_knots(
    x: float, y: float, weights: tuple[float, float, float, float]
) -> None:
    a, b, c, _ = weights
    # A product of both logarithms is linear in each between neighbours.
    found = grid(lambda u, v: a + b * u + c * v).at(
        {"x": np.array([x]), "y": np.array([y]), "z": np.array([5.0])}
    )
    assert found[0] == pytest.approx(a + b * np.log(x) + c * np.log(y), abs=1e-9)


def test_a_grid_keeps_the_edge_beyond_its_knots() -> None:
    known = grid(lambda u, v: u + v)
    ends = {"x": np.array([8.0]), "y": np.array([1000.0]), "z": np.array([3.0])}
    beyond = {"x": np.array([80.0]), "y": np.array([9e9]), "z": np.array([1.0])}
    assert known.at(beyond) == known.at(ends)


def test_a_file_keeps_values_to_half_a_step() -> None:
    random = np.random.default_rng(1)
    known = Grid(AXES, random.normal(0, 2, (3, 2, 1)))
    again = grid_of(known.document())
    assert np.abs(again.values - known.values).max() <= STEP / 2 + 1e-12
    fine = grid_of(known.document(0.001))
    assert np.abs(fine.values - known.values).max() <= 0.0005 + 1e-12
    twice = grid_of(again.document())
    assert (twice.values == again.values).all()


def test_damaged_grids_are_refused() -> None:
    document = grid(lambda u, v: u + v).document()
    with pytest.raises(InputError, match="damaged"):
        grid_of(document | {"values": document["values"][:-4]})
    with pytest.raises(InputError, match="needs as many values"):
        Grid(AXES, np.zeros((3, 3, 1)))
    with pytest.raises(InputError, match="positive and ascending"):
        Grid({"x": np.array([2.0, 1.0])}, np.zeros(2))


def test_the_smooth_law_is_the_published_formula() -> None:
    # 0.75 * min / (min + c) * m / (m + c), c = 256, compute bound.
    m, n, k = 4096.0, 8192.0, 2048.0
    reached = 0.75 * k / (k + 256) * m / (m + 256)
    expected = 2 * m * n * k / (1e15 * reached)
    assert smooth().seconds(m=m, n=n, k=k) == pytest.approx(expected, rel=1e-6)


def test_a_surface_multiplies_the_law() -> None:
    surface = Grid({"m": np.array([1.0])}, np.array([np.log(2.0)]))
    sizes = {"m": 512.0, "n": 512.0, "k": 512.0}
    twice = smooth(surface=surface).seconds(**sizes)
    assert twice == pytest.approx(2 * smooth().seconds(**sizes))


def test_sizes_outside_are_refused_unless_asked_for() -> None:
    kernel = smooth(band=Grid({"m": np.array([1.0])}, np.array([0.1])))
    with pytest.raises(InputError, match=r"m of gemm-smooth .* 65536, got 100000"):
        kernel.seconds(m=[64, 100000], n=64, k=64)
    assert kernel.seconds(m=100000, n=64, k=64, beyond=True) > 0
    assert list(kernel.inside(m=[64, 100000], n=64, k=64)) == [True, False]
    inside, outside = kernel.half_width(m=[64, 100000], n=64, k=64)
    assert inside == pytest.approx(np.expm1(0.1))
    assert outside == 2 * inside
    with pytest.raises(InputError, match="k is missing"):
        kernel.seconds(m=64, n=64)
    with pytest.raises(InputError, match="has no band"):
        smooth().half_width(m=64, n=64, k=64)


def test_one_shape_takes_the_same_time_alone_and_in_a_batch() -> None:
    sides = 2.0 ** np.random.default_rng(2).uniform(5, 16, (3, 20_000))
    m, n, k = sides
    batch = smooth().seconds(m=m, n=n, k=k)
    for index in (0, 8191, 8192, 19_999):
        assert smooth().seconds(m=m[index], n=n[index], k=k[index]) == batch[index]


def test_damaged_kernels_are_refused() -> None:
    with pytest.raises(InputError, match="law is one of"):
        kernel_of({"law": "magic"})
    with pytest.raises(InputError, match="lacks a field"):
        kernel_of({"law": "gemm-smooth"})


@given(st.floats(1e-9, 1.0), st.floats(1e-9, 1.0), st.floats(1.0, 50.0))
def test_times_that_overlap_take_between_the_longer_and_the_sum(
    first: float, second: float, sharpness: float
) -> None:
    joined = float(either(np.array(first), np.array(second), sharpness))
    assert max(first, second) * (1 - 1e-12) <= joined
    assert joined <= (first + second) * (1 + 1e-12)


SIZES = {
    "m": (64, 4096),
    "n": (64, 4096),
    "k": (64, 4096),
    "batch": (1, 8),
    "seq": (128, 8192),
    "heads": (1, 64),
    "tokens": (16, 16384),
    "hidden": (1024, 8192),
    "inter": (128, 8192),
    "groups": (1, 64),
    "bytes": (2**10, 2**28),
}


@pytest.mark.parametrize("name", LAWS)
@given(st.randoms(use_true_random=False))
def test_more_work_never_takes_less_time_under_a_law(name: str, random) -> None:  # type: ignore[no-untyped-def]
    law = LAWS[name]
    sizes = {
        "group": 1.0,
        "query_dim": 128.0,
        "value_dim": 128.0,
        "products": 1.0,
        "topk": 2.0,
        "experts": 8.0,
        "ep": 2.0,
        "ranks": 8.0,
        "rounds": 2.0,
        "nodes": 2.0,
        "sms": 20.0,
    }
    sizes |= {key: float(random.randint(*ends)) for key, ends in SIZES.items()}
    if name == "gemm-smooth":
        # Below its saturation this law has a product of fewer rows take longer.
        sizes["m"] = max(sizes["m"], 256.0)
    if name.startswith("grouped-mlp"):
        # The first rows of an expert fill a block that is paid for anyway, and the
        # law spreads its start-up over them.
        sizes["tokens"] = max(sizes["tokens"], 2048.0)
    grown = random.choice([key for key in law.sizes if key in SIZES])
    larger = sizes | {grown: 2 * sizes[grown]}
    least, more = (
        law.seconds(law.priors, {k: np.array([v]) for k, v in z.items()}, MACHINE)
        for z in (sizes, larger)
    )
    assert more[0] >= least[0] * (1 - 1e-9)
