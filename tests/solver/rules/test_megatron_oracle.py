"""Configurations nobody has seen, judged by the rules and by megatron-core itself."""

import copy
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from megatron_oracle import Megatron

from shardproof.benchmarks.legality import judge
from shardproof.solver.rules import rules

DATA = Path(__file__).parent / "data" / "megatron_core_0.16.1.json.gz"
RULES = {rule.id: rule for rule in rules("megatron@0.16")}
DRAWS = 2_000
#: Rules that decide whether every layer is placed once.
PLACES = {
    "layers-account",
    "layers-pp",
    "layout-lost",
    "size-division",
    "size-lost",
    "size-middle",
}
#: Restates the optimizer's configuration, another object.
OPTIMIZER = {"precision-aware"}
_FIRST = "num_layers_in_first_pipeline_stage"
_LAST = "num_layers_in_last_pipeline_stage"
_STRUCTURE = (
    "pp",
    "vpp",
    _FIRST,
    _LAST,
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
)


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    found = json.loads(gzip.decompress(DATA.read_bytes()))
    assert isinstance(found, list)
    return found


def draw(
    cases: list[dict[str, Any]], values: dict[str, list[Any]], rng: random.Random
) -> dict[str, Any]:
    """Change one to three entries of a case to values of other cases."""
    case = copy.deepcopy(rng.choice(cases))
    names = list(values) if rng.random() < 0.6 else list(_STRUCTURE)
    names = [n for n in names if n != "pipeline_model_parallel_layout"]
    for name in rng.choices(names, k=rng.randint(1, 3)):
        case["config"][name] = copy.deepcopy(rng.choice(values[name]))
    layers = case["arch"]["num_layers"]
    if rng.random() < 0.2:
        sizes = (1, 2, layers // 2, layers - 1, layers, layers + 2)
        case["config"][rng.choice((_FIRST, _LAST))] = rng.choice(sizes)
    return case


def disagreement(case: dict[str, Any], megatron: Megatron) -> str:
    """Return what rules and megatron-core say differently, empty if nothing."""
    _, broken = judge(case)
    core = {r for r in broken if RULES[r].checker in ("core", "layers")}
    config = {r for r in core if RULES[r].where == "config"} - OPTIMIZER
    try:
        built = megatron.configure(case)
    except (AssertionError, ValueError) as error:
        lost = "size-lost" in core
        return "" if config or lost else f"refused: {str(error)[:200]}"
    if config:
        return f"accepted, but {sorted(config)} are broken"
    if "vpp-pp" in core:
        return ""
    try:
        whole = megatron.places_each_layer_once(built, case)
    except (AssertionError, ZeroDivisionError):
        whole = False
    if whole == bool(core & PLACES):
        return f"each layer once: {whole}, broken: {sorted(core)}"
    return ""


@pytest.mark.slow
def test_rules_and_megatron_core_agree_on_drawn_configurations(
    cases: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    megatron = Megatron(monkeypatch)
    values = {n: [c["config"][n] for c in cases] for n in cases[0]["config"]}
    rng = random.Random(20_261_201)
    told = []
    for number in range(DRAWS):
        case = draw(cases, values, rng)
        found = disagreement(case, megatron)
        if found:
            told.append((number, case["id"], found))
    assert told == []


@pytest.mark.slow
def test_the_oracle_repeats_the_verdicts_of_the_sample(
    cases: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An oracle that accepts or refuses all would agree with nothing here."""
    megatron = Megatron(monkeypatch)
    for case in cases[::3]:
        try:
            megatron.configure(case)
            accepted = True
        except (AssertionError, ValueError):
            accepted = False
        assert accepted == (case["stage_failed"] != "config"), case["id"]
