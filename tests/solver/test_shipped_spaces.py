"""The spaces of the five workloads have as many configurations as the sentences say."""

import pytest
from axis_words import wide_facts, words_of
from oracles import recount

from shardproof.interfaces.request import Request
from shardproof.models.problem import Problem
from shardproof.solver.feasible import enumerate_feasible
from shardproof.solver.space import Space, load_space

#: Counted by ``oracles.recount`` alone, in plain loops.
RECOUNTED = {
    "llama-3.1-8b-8xh100": 21_945_312,
    "mixtral-8x22b-32xmi300x": 833_843_712,
    "llama-3.1-405b-1024xh100": 409_537_056,
    "llama-3.1-405b-16384xh100": 127_015_392,
    "deepseek-v3-2048xh800": 1_888_806_696,
}


def asked(name: str) -> tuple[Problem, Space]:
    space = load_space(name)
    return Request(space=name, **space.workload).problem(), space  # type: ignore[arg-type]


@pytest.mark.parametrize("name", RECOUNTED)
def test_arrays_count_what_the_sentences_count(name: str) -> None:
    problem, space = asked(name)
    found = enumerate_feasible(problem, space, rules_only=True)
    assert found.count == RECOUNTED[name]


@pytest.mark.parametrize("name", RECOUNTED)
def test_each_workload_has_every_axis(name: str) -> None:
    problem, space = asked(name)
    sparse = problem.architecture.moe is not None
    single = {n for n in space.axes if len(space.values(n, problem)) == 1}
    assert single <= ({"gbs"} if sparse else {"ep", "etp", "dispatcher"})


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", RECOUNTED)
def test_plain_loops_count_again(name: str) -> None:
    problem, space = asked(name)
    words, facts = words_of(problem, space), wide_facts(problem, space)
    assert recount.count(words, facts) == RECOUNTED[name]
