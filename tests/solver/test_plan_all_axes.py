"""A plan over a space of optional axes keeps what it chose of them."""

from dataclasses import replace

from strategies import plain_problem

from shardproof.models.catalogue import cluster
from shardproof.models.layout import axis_code
from shardproof.solver.answer import Answer
from shardproof.solver.feasible import enumerate_feasible
from shardproof.solver.plan import plan


def test_the_chosen_layouts_are_in_the_set() -> None:
    problem, space = plain_problem()
    problem = replace(problem, cluster=cluster("1x8:h100"))
    for name, words in (
        ("cp_style", ("p2p", "a2a")),
        ("offload", ("activations",)),
        ("instances", ("1", "2")),
        ("overlap_grads", ("on",)),
    ):
        space = space.restrict(name, tuple(axis_code(name, w) for w in words))
    answer = plan(problem, space, top=5)
    assert isinstance(answer, Answer)
    found = enumerate_feasible(problem, space)
    assert answer.certificate.feasible_count == found.count
    for choice in answer.answers:
        assert choice.layout in found
        assert choice.layout.labels()["offload"] == "activations"
        assert choice.layout.labels()["overlap_grads"] is True
