"""Sets over every axis equal a brute force from the rules' sentences."""

import numpy as np
import pytest
from axis_words import (
    Drawn,
    brute_rows,
    names_of,
    wide_facts,
    wide_problems,
    words_of,
)
from hypothesis import HealthCheck, given, settings
from oracles import recount

from shardproof.models.layout import OPTIONAL
from shardproof.solver.feasible import FeasibleSet, enumerate_feasible

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def rows_of(found: FeasibleSet, names: tuple[str, ...]) -> list[tuple[int, ...]]:
    columns = dict(found.columns)
    size = len(columns["tp"])
    for name in names:
        # An axis of one value, its default, is no column.
        columns.setdefault(name, np.full(size, OPTIONAL.get(name, 0)))
    return list(zip(*(columns[n].tolist() for n in names), strict=True))


def check(drawn: Drawn) -> None:
    problem, space = drawn
    expected = brute_rows(problem, space)
    found = enumerate_feasible(problem, space, rules_only=True)
    rows = rows_of(found, names_of(space))
    assert set(rows) == expected
    assert found.count == found.legal_count == len(rows) == len(expected)
    assert recount.count(words_of(problem, space), wide_facts(problem, space)) == len(
        rows
    )


@given(wide_problems())
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
def test_every_axis_has_what_the_sentences_allow(drawn: Drawn) -> None:
    check(drawn)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(wide_problems())
@settings(max_examples=1000, deadline=None, suppress_health_check=SLOW)
def test_a_thousand_problems_have_what_the_sentences_allow(drawn: Drawn) -> None:
    check(drawn)


@given(wide_problems())
@settings(max_examples=8, deadline=None, suppress_health_check=SLOW)
def test_cp_sat_and_arrays_agree_on_every_axis(drawn: Drawn) -> None:
    problem, space = drawn
    for name in ("tp", "pp", "ep"):
        codes = space.axes[name]
        assert isinstance(codes, tuple)
        space = space.restrict(name, (codes[0], codes[-1]))
    found = enumerate_feasible(problem, space, engine="both", rules_only=True)
    by_cpsat = enumerate_feasible(problem, space, engine="cpsat", rules_only=True)
    assert by_cpsat.content_hash == found.content_hash
    assert by_cpsat.count == found.count
