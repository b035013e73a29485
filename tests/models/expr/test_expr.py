"""Expressions: the interpreters agree, and the algebra keeps the value."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import AXES, expressions

from shardproof.models import expr as ex

X, Y, Z = (ex.axis(a) for a in AXES)
POINTS = [
    dict(zip("xyz", values, strict=True))
    for values in product(*(a.values for a in AXES))
]
COLUMNS = {n: np.array([p[n] for p in POINTS]) for n in "xyz"}


@given(expressions())
def test_arrays_give_the_same_value_as_ints(root: ex.Expr) -> None:
    by_array = np.broadcast_to(ex.Evaluator(COLUMNS)(root), len(POINTS))
    assert by_array.tolist() == [ex.value(root, p) for p in POINTS]


@given(expressions())
def test_bounds_enclose_every_value(root: ex.Expr) -> None:
    found = [ex.value(root, p) for p in POINTS]
    assert root.lo <= min(found)
    assert max(found) <= root.hi


@given(expressions())
def test_axes_broadcast(root: ex.Expr) -> None:
    grid = {
        a.name: np.array(a.values).reshape([-1 if i == j else 1 for j in range(3)])
        for i, a in enumerate(AXES)
    }
    by_grid = np.broadcast_to(ex.Evaluator(grid)(root), [len(a.values) for a in AXES])
    assert by_grid.ravel().tolist() == [ex.value(root, p) for p in POINTS]


@given(expressions(), st.sampled_from([0, 1, 2, 5]))
def test_substitution_keeps_the_value(root: ex.Expr, x: int) -> None:
    (fixed,) = ex.substitute([root], {"x": x})
    assert "x" not in {a.name for a in ex.axes(fixed)}
    for point in POINTS:
        if point["x"] == x:
            assert ex.value(fixed, point) == ex.value(root, point)


@given(expressions())
@settings(max_examples=60, deadline=None)
def test_cp_sat_gives_the_same_value_as_ints(root: ex.Expr) -> None:
    from shardproof.solver.cpsat.encode import Encoder
    from shardproof.solver.cpsat.enumerate import solutions

    encoder = Encoder()
    variables = [encoder.declare(a) for a in AXES]
    result = encoder.model.new_int_var(root.lo, root.hi, "result")
    encoder.model.add(result == encoder.term(root))
    rows = solutions(encoder.model, [*variables, result])
    expected = {(*p.values(), ex.value(root, p)) for p in POINTS}
    assert len(rows) == len(POINTS)
    assert set(rows) == expected


@given(expressions())
@settings(max_examples=60, deadline=None)
def test_cp_sat_requires_what_ints_call_true(root: ex.Expr) -> None:
    from shardproof.solver.cpsat.encode import Encoder
    from shardproof.solver.cpsat.enumerate import solutions

    encoder = Encoder()
    variables = [encoder.declare(a) for a in AXES]
    encoder.require([ex.at_least(root, 3)])
    rows = solutions(encoder.model, variables)
    assert sorted(rows) == sorted(
        tuple(p.values()) for p in POINTS if ex.value(root, p) >= 3
    )


def test_equal_expressions_are_one_node() -> None:
    assert 2 * X + 3 + X is 3 * X + 3
    assert (X + Y) * Z is X * Z + Z * Y
    assert ex.both(ex.less(X, Y), ex.TRUE) is ex.less(X, Y)


def test_exact_quotients_with_one_divisor_become_one() -> None:
    left = ex.exact_div(12 * X, Y) + 2 * ex.exact_div(8 * X, Y)
    assert left is ex.exact_div(28 * X, Y)


def test_floored_quotients_stay_apart() -> None:
    apart = ex.floor_div(X, Y) + ex.floor_div(X + 1, Y)
    assert ex.value(apart, {"x": 1, "y": 2}) == 1


def test_a_comparison_that_always_holds_is_true() -> None:
    assert ex.at_most(X, 5) is ex.TRUE
    assert ex.at_most(X, 4) is not ex.TRUE
    assert ex.equals(X, 7) is ex.FALSE


@pytest.mark.parametrize("divide", [ex.floor_div, ex.exact_div, ex.modulo])
def test_a_divisor_that_may_be_zero_is_refused(divide: object) -> None:
    with pytest.raises(ValueError, match="divisor"):
        divide(Y, X)  # type: ignore[operator]


def test_a_python_branch_on_an_axis_is_refused() -> None:
    with pytest.raises(TypeError, match="no truth value"):
        bool(ex.less(X, Y))


def test_a_table_index_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="table of 3 entries"):
        ex.table(X, [1, 2, 3])


def test_arrays_refuse_what_64_bits_may_not_hold() -> None:
    large = ex.product([X + 2**40, Y + 2**40])
    assert not ex.fits_int64(large)
    with pytest.raises(OverflowError):
        ex.Evaluator(COLUMNS)(large)
    assert ex.value(large, POINTS[0]) == 2**40 * (2**40 + 1)


def test_cp_sat_refuses_what_62_bits_may_not_hold() -> None:
    from shardproof.solver.cpsat.encode import Encoder

    with pytest.raises(OverflowError):
        Encoder().term(X + 2**62)


def test_expressions_can_be_read() -> None:
    assert repr(ex.ceil_div(X, 4)) == "((x + 3) // 4)"
    assert repr(ex.divides(Y, X)) in ("((x % y) == 0)", "(0 == (x % y))")
