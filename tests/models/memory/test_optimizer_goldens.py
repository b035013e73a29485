"""States of optimizers against those of torch, transformers and Megatron."""

import json
from pathlib import Path

import pytest

from shardproof.benchmarks.memory_cases import architecture_of, dims_of, kernels_of
from shardproof.models.expr import value
from shardproof.models.memory.optimizers import recipe
from shardproof.models.memory.state import State
from shardproof.models.stages import Chunk

DATA = Path(__file__).parent / "data" / "optimizer_states.json"
CASES = json.loads(DATA.read_text())
NARROW = {"adamw": "adam-bf16", "adafactor": "adafactor-bf16"}
WIDE = {"adamw": "adam-fp32", "adafactor": "adafactor-fp32", "muon": "muon-fp32"}


def recipe_of(case):
    if "rule" not in case:
        return "sgd-momentum" if case["momentum"] else "sgd"
    return (NARROW if case["dtype"] == "bfloat16" else WIDE)[case["rule"]]


def label(entry):
    case = entry["case"]
    return f"{entry['name']}-{recipe_of(case)}-tp={case['tp']}-{case.get('pre', True)}"


def state_of(case):
    kernels = kernels_of(case)
    return State(
        architecture_of(case),
        dims_of(case),
        recipe_of(case),
        1,
        kernels.latent_norm,
        kernels.latent_bias,
    )


@pytest.mark.parametrize("entry", CASES, ids=label)
def test_states_gradients_and_weights(entry):
    case = entry["case"]
    state, used = state_of(case), recipe(recipe_of(case))
    head, embedding = case.get("post", True), case.get("pre", True)
    chunk = Chunk(layers=(case["layers"],), mtp=0, embedding=embedding, head=head)
    parts = [(name, value(size, {})) for name, size in state.bytes((chunk,))]
    weights = used.weights * entry["params"]
    gradients = used.gradients * entry["params"]
    if "rule" in case:
        assert (weights, gradients) == (entry["weights"], entry["gradients"])
        states = entry["states"]
    else:
        assert gradients == sum(entry["grad_buf"])
        states = entry["masters"] + entry["states"]
    assert sum(size for _, size in parts) == weights + gradients + states


def test_every_optimizer_is_there_over_several_models():
    assert len(CASES) >= 70
    assert len({entry["name"] for entry in CASES}) >= 6
    used = {recipe_of(entry["case"]) for entry in CASES}
    assert used == {*WIDE.values(), *NARROW.values(), "sgd", "sgd-momentum"}
