"""Arrays, CP-SAT and the brute force from the sentences find the same set."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from oracles import brute_force
from strategies import plain_problem, problems

from shardproof.models.architecture import Attention, DenseFFN, LatentAttention, MoE
from shardproof.models.layout import SCHEDULES, SHARDINGS, SPLITS, recompute_label
from shardproof.models.problem import Problem
from shardproof.solver.domains import bind
from shardproof.solver.feasible import NAMES, enumerate_feasible
from shardproof.solver.space import Space
from shardproof.solver.vector import legal_points

Rows = set[tuple[int, ...]]


def facts_of(problem: Problem, space: Space) -> brute_force.Facts:
    """Read the plain numbers off a problem."""
    kinds = problem.architecture.kinds
    blocks = [k.feed_forward for k in kinds]
    attentions = [k.attention for k in kinds]
    moes = [b for b in blocks if isinstance(b, MoE)]
    return brute_force.Facts(
        world=problem.cluster.nodes * problem.cluster.gpus_per_node,
        domain=min(
            problem.cluster.fabric.scale_up_size,
            problem.cluster.nodes * problem.cluster.gpus_per_node,
        ),
        seq_len=problem.training.seq_len,
        global_batch=problem.training.global_batch,
        layers=len(problem.architecture.layers),
        heads=frozenset(a.heads for a in attentions),
        kv_heads=frozenset(a.kv_heads for a in attentions if isinstance(a, Attention)),
        dense_ffn=frozenset(b.ffn for b in blocks if isinstance(b, DenseFFN)),
        expert_ffn=frozenset(b.ffn for b in moes),
        shared_ffn=frozenset(b.shared_ffn for b in moes if b.shared_ffn),
        experts=moes[0].experts if moes else 0,
        latent=any(isinstance(a, LatentAttention) for a in attentions),
        tp_in_node="tp-node" in space.advice,
    )


def expected_rows(problem: Problem, space: Space) -> Rows:
    """Ask the brute force, in the codes of the product."""
    words: dict[str, list[object]] = {
        n: list(space.values(n, problem)) for n in NAMES if n in space.axes
    }
    names = {"schedule": SCHEDULES, "split": SPLITS, "sharding": SHARDINGS}
    for axis, labels in names.items():
        words[axis] = [labels[c] for c in space.values(axis, problem)]
    by_set: dict[object, int] = {}
    for code in space.values("recompute", problem):
        label = recompute_label(code)
        modules = frozenset(label.split("+")) - {"none"}
        by_set["full" if label == "full" else modules] = code
    words["recompute"] = list(by_set)
    rows = set()
    for found in brute_force.legal(words, facts_of(problem, space)):
        coded = {a: labels.index(str(found[a])) for a, labels in names.items()}
        coded["recompute"] = by_set[found["recompute"]]
        rows.add(tuple(int(coded.get(n, found[n])) for n in NAMES))  # type: ignore[call-overload]
    return rows


def rows_of(columns: dict[str, np.ndarray]) -> Rows:
    return set(zip(*(columns[n].tolist() for n in NAMES), strict=True))


@given(problems())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_arrays_find_what_the_sentences_allow(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    found = enumerate_feasible(problem, space, rules_only=True)
    assert rows_of(dict(found.columns)) == expected_rows(problem, space)
    assert found.count == len(rows_of(dict(found.columns)))


@given(problems())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_cp_sat_finds_what_the_sentences_allow(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    found = enumerate_feasible(problem, space, engine="cpsat", rules_only=True)
    assert rows_of(dict(found.columns)) == expected_rows(problem, space)


@given(problems())
@settings(max_examples=100, deadline=None)
def test_pure_data_parallelism_is_always_legal(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    columns = legal_points(bind(problem, space)).columns()
    plain = [columns[n] == 1 for n in ("tp", "pp", "cp", "ep", "etp", "vpp", "mbs")]
    assert np.logical_and.reduce(plain).any()


@pytest.mark.parametrize("rules_only", [True])
@given(drawn=problems())
@settings(max_examples=10, deadline=None)
def test_the_hash_is_the_same_for_every_engine(
    rules_only: bool, drawn: tuple[Problem, Space]
) -> None:
    problem, space = drawn
    one = enumerate_feasible(problem, space, rules_only=rules_only)
    two = enumerate_feasible(problem, space, engine="both", rules_only=rules_only)
    assert one.content_hash == two.content_hash


@given(problems())
@settings(max_examples=50, deadline=None)
def test_a_set_folds_without_loss(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    found = enumerate_feasible(problem, space, rules_only=True)
    layouts = list(found.layouts())
    assert len(layouts) == found.count == len(set(layouts))
    assert all(layout in found for layout in layouts[::7])
    rows = [tuple(layout.point()[n] for n in NAMES) for layout in layouts]
    assert set(rows) == rows_of(dict(found.columns))
    assert set(found.sample(20)) <= set(layouts)


@given(problems())
@settings(max_examples=30, deadline=None)
def test_a_layout_outside_is_not_in_the_set(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    found = enumerate_feasible(problem, space, rules_only=True)
    for layout in list(found.layouts())[:5]:
        assert replace(layout, tp=layout.tp * 7) not in found
        assert replace(layout, recompute=1) not in found or 1 in space.axes["recompute"]


def test_samples_are_uniform_over_configurations() -> None:
    problem, space = plain_problem()
    found = enumerate_feasible(problem, space, rules_only=True)
    drawn = Counter(found.sample(200 * found.count, seed=7))
    assert len(drawn) == found.count
    # Each count is near 200; 6 standard deviations is beyond chance.
    assert max(abs(n - 200) for n in drawn.values()) < 6 * 200**0.5


def test_an_empty_set_is_a_set() -> None:
    problem, space = plain_problem(hbm_bytes=2**20)
    found = enumerate_feasible(problem, space, engine="both")
    assert found.count == 0
    assert list(found.layouts()) == []
    assert found.sample(3) == []
