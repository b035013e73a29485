"""CP-SAT with assumptions finds the conflicts and corrections of the masks."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import plain_problem

from shardproof.solver.domains import bind
from shardproof.solver.explain import explain_request, lift
from shardproof.solver.explain.assumptions import conflicts_and_corrections, guarded

CASES = [
    {"hbm_bytes": 2**27},
    {"hbm_bytes": 2**28, "pins": {"tp": (1,)}},
    {"pins": {"tp": (4,), "pp": (2,), "sp": (0,), "vpp": (2,), "schedule": (0,)}},
    {},
]


@pytest.mark.parametrize("case", CASES)
def test_assumptions_and_masks_agree(case: dict[str, object]) -> None:
    options = dict(case)
    pins = options.pop("pins", {})
    problem, space = plain_problem(**options)  # type: ignore[arg-type]
    for name, codes in (("cp", (1,)), ("mbs", (1,)), ("split", (0,))):
        space = space.restrict(name, codes)
    request = lift(bind(replace(problem, pins=pins), space))
    answer, model = explain_request(request), guarded(request)
    conflicts, corrections = conflicts_and_corrections(model.names, model.core)
    assert set(conflicts) == {frozenset(c) for c in answer.conflicts}
    assert set(corrections) == {frozenset(c.rules) for c in answer.corrections}
    for conflict in conflicts:
        # A conflict is what the solver itself says is enough.
        assert model.core(conflict) == conflict


@given(st.lists(st.frozensets(st.sampled_from("abcde")), min_size=1, max_size=6))
def test_duality_finds_every_minimal_set(points: list[frozenset[str]]) -> None:
    """Tests points that break given constraints, and tries every subset."""

    def core(kept: Iterable[str]) -> frozenset[str] | None:
        wanted = frozenset(kept)
        return None if any(not p & wanted for p in points) else wanted

    conflicts, corrections = conflicts_and_corrections("abcde", core)
    subsets = [frozenset(c) for n in range(6) for c in combinations("abcde", n)]
    excluding = [s for s in subsets if core(s) is not None]
    minimal = {s for s in excluding if not any(t < s for t in excluding)}
    assert set(conflicts) == minimal
    assert set(corrections) == {p for p in points if not any(q < p for q in points)}
