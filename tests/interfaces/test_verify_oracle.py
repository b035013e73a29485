"""The rules, counts and bytes of ``verify`` are the product's, and the goldens'."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import problems

from shardproof.interfaces import document as documents
from shardproof.interfaces.request import Request
from shardproof.interfaces.verify.count import Space as Loops
from shardproof.interfaces.verify.rules import Rules
from shardproof.interfaces.verify.saved import parse
from shardproof.models.expr import value
from shardproof.models.layout import AXES
from shardproof.solver.domains import bind
from shardproof.solver.explain.why import rounded_layout
from shardproof.solver.peaks import Peaks
from shardproof.solver.single import complete_layout, evaluate
from shardproof.solver.space import Space, load_space
from shardproof.solver.vector import legal_points

if TYPE_CHECKING:
    from shardproof.models.problem import Problem


def loops(problem: Problem, space: Space) -> Loops:
    """The checks over a problem as a file would hold it."""
    document = {"digest": "", "problem": documents.problem(problem)}
    saved = parse(documents.with_space(document, space))
    return Loops(saved, Rules(saved))


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(problems())
def test_counts_are_the_products(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    domains = bind(problem, space)
    points = legal_points(domains)
    peaks = Peaks(domains).of_points(points)[points.legal]
    found = loops(problem, space).count()
    assert found.legal == points.count
    assert found.feasible == int((peaks <= problem.cluster.device.hbm_bytes).sum())
    assert found.least == (int(peaks.min()) if points.count else None)


@pytest.mark.parametrize("name", ["gpt2-xl", "gpt-oss-20b", "deepseek-v2-lite"])
def test_counts_are_the_products_for_models_with_biases_and_latents(name: str) -> None:
    problem = Request(
        model=name, cluster="1x4:h100", seq_len=1024, global_batch=16
    ).problem()
    domains = bind(problem, load_space())
    mine = loops(problem, load_space())
    assert sum(1 for _ in mine.legal()) == legal_points(domains).count


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_broken_rules_are_the_products(drawn: tuple[Problem, Space], seed: int) -> None:
    """Tests points of the raw product, most of them illegal."""
    problem, space = drawn
    domains = bind(problem, space)
    mine, rng = loops(problem, space), np.random.default_rng(seed)
    for _ in range(20):
        codes = {n: int(rng.choice(domains.values[n])) for n in AXES}
        layout = rounded_layout(problem, codes)
        point = layout.point() | {"gbs": codes["gbs"]}
        if any(point[n] not in domains.values[n] for n in ("dp", "edp", "m")):
            continue
        broken = {r.id for r, body in domains.rules if not value(body, point)}
        assert set(mine.rules.broken(layout.labels())) == broken


@pytest.mark.parametrize(
    ("model", "cluster", "axes"),
    [
        ("llama-3.1-70b", "8x8:h100", {"tp": 4, "pp": 4, "vpp": 5, "cp": 2}),
        ("mixtral-8x22b", "4x8:mi300x", {"tp": 2, "pp": 4, "ep": 8}),
        ("deepseek-v3", "256x8:h800", {"tp": 2, "pp": 16, "ep": 8}),
        ("qwen3-30b-a3b", "2x8:h100", {"tp": 2, "ep": 4}),
        ("gpt-oss-20b", "2x8:h100", {"tp": 1, "ep": 4}),
        ("gpt3-175b", "8x8:h100", {"tp": 8, "pp": 8}),
        ("gemma-2-27b", "2x8:h100", {"tp": 4, "recompute": 128}),
    ],
)
def test_bytes_are_the_products(model: str, cluster: str, axes: dict[str, int]) -> None:
    problem = Request(
        model=model, cluster=cluster, seq_len=4096, global_batch=15360
    ).problem()
    for optimizer in ("megatron-adam", "megatron-adam-bf16-state", "primus-adam"):
        training = replace(problem.training, optimizer=optimizer)
        asked = replace(problem, training=training)
        layout = complete_layout(asked, axes)
        expected = evaluate(asked, layout).memory.per_rank
        assert loops(asked, load_space()).peaks(layout.labels()) == expected
