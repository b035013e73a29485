"""The ways in which CP-SAT enumeration goes wrong, each kept out."""

import pytest
from ortools.sat.python import cp_model

from shardproof.models import expr as ex
from shardproof.solver.cpsat.encode import Encoder
from shardproof.solver.cpsat.enumerate import IncompleteError, solutions

X = ex.axis(ex.Axis("x", tuple(range(7))))
Y = ex.axis(ex.Axis("y", tuple(range(1, 8))))


def encode(*conditions: ex.Expr) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    encoder = Encoder()
    variables = [encoder.declare(a) for a in ex.axes(X, Y)]
    encoder.require(conditions)
    return encoder.model, variables


def pairs(condition: ex.Expr) -> list[tuple[int, int]]:
    return [
        (x, y)
        for x in range(7)
        for y in range(1, 8)
        if ex.value(condition, {"x": x, "y": y})
    ]


def test_one_worker_finds_every_solution_once() -> None:
    condition = ex.at_most(X + Y, 9)
    found = solutions(*encode(condition))
    assert sorted(found) == pairs(condition)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    "condition",
    [
        # Half-reified literals would leave the disjunction's helpers free.
        ex.either(ex.at_most(X, 2), ex.at_most(Y, 3), ex.equals(X, Y)),
        # A maximum bounded from one side only would take every larger value.
        ex.at_most(ex.maximum(X, Y, 2), 4),
        # The branch not taken must not leave its variable free.
        ex.at_most(ex.where(ex.less(X, 3), X * Y, Y), 5),
        # A quotient and a remainder are functions of their arguments.
        ex.equals(ex.floor_div(X * Y, 3), ex.modulo(X + 4, 3)),
        ex.negate(ex.both(ex.divides(Y, X), ex.less(X, Y))),
    ],
    ids=["either", "maximum", "where", "quotient", "negation"],
)
def test_helper_variables_do_not_multiply_solutions(condition: ex.Expr) -> None:
    assert sorted(solutions(*encode(condition))) == pairs(condition)


def test_an_axis_that_no_rule_names_is_still_enumerated() -> None:
    found = solutions(*encode(ex.equals(X, 3)))
    assert sorted(found) == [(3, y) for y in range(1, 8)]


def test_several_workers_may_lose_solutions_so_one_is_set() -> None:
    """The search parameters in use say one worker; the status alone would not tell."""
    from shardproof.solver.cpsat import enumerate as lane

    parameters = cp_model.CpSolver().parameters
    parameters.parse_text_format(lane._SEARCH)
    assert parameters.num_workers == 1
    assert parameters.enumerate_all_solutions


def test_an_axis_without_meaning_has_one_value() -> None:
    """Left free, it would multiply the configurations to which it says nothing."""
    from strategies import plain_problem

    from shardproof.solver.feasible import enumerate_feasible

    problem, space = plain_problem()
    plain = enumerate_feasible(problem, space, engine="cpsat", rules_only=True)
    styles = space.restrict("cp_style", (1, 3)).restrict("dispatcher", (0, 1))
    wide = enumerate_feasible(problem, styles, engine="cpsat", rules_only=True)
    single = int((plain.columns["cp"] == 1).sum())
    assert single < plain.count
    assert wide.count == 2 * plain.count - single
    assert set(wide.columns["dispatcher"]) == {0}


def test_a_repeated_solution_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from strategies import plain_problem

    from shardproof.solver.cpsat import enumerate as lane
    from shardproof.solver.domains import bind

    found = lane.solutions
    monkeypatch.setattr(lane, "solutions", lambda *a: found(*a) * 2)
    with pytest.raises(IncompleteError, match="repeated"):
        lane.enumerate_cpsat(bind(*plain_problem()), None)


def test_a_truncated_enumeration_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from shardproof.solver.cpsat import enumerate as lane

    monkeypatch.setattr(
        lane, "_SEARCH", lane._SEARCH + "max_deterministic_time: 1e-9\n"
    )
    with pytest.raises(IncompleteError, match="incomplete"):
        solutions(*encode(ex.at_most(X * Y, 20)))


def test_a_model_that_may_overflow_is_an_error_not_an_empty_set() -> None:
    model, variables = encode()
    model.add(2**61 * variables[0] + 2**61 * variables[1] <= 2**62)
    with pytest.raises(IncompleteError, match="refused the model"):
        solutions(model, variables)


def test_a_coefficient_that_64_bits_cannot_hold_is_refused_before() -> None:
    with pytest.raises(OverflowError):
        encode(ex.at_most(X * 2**61 + Y * 2**61, 2**62))


def test_a_divisor_domain_with_zero_is_refused_before() -> None:
    with pytest.raises(ValueError, match="divisor"):
        ex.divides(X, Y)


def test_division_and_remainder_agree_with_python() -> None:
    condition = ex.both(
        ex.equals(ex.floor_div(X * 5, Y), ex.floor_div(X * 5 + 0, Y)),
        ex.equals(ex.modulo(X * 5, Y) + Y * ex.floor_div(X * 5, Y), X * 5),
    )
    assert len(solutions(*encode(condition))) == 49


def test_an_infeasible_model_gives_the_empty_set() -> None:
    assert solutions(*encode(ex.less(X, 0))) == []
    assert solutions(*encode(ex.FALSE)) == []
