"""FSDP2's shards and working sets against torch's own memory tracker, to the byte."""

import json
from math import prod
from pathlib import Path

import pytest

from shardproof.models.architecture import Architecture, Attention, DenseFFN, Layer
from shardproof.models.expr import value
from shardproof.models.layout import DECIDED, DERIVED, SHARDINGS, Dims
from shardproof.models.memory.state import State
from shardproof.models.memory.working import working_set
from shardproof.models.parameters import embedding_tensors, head_tensors, layer_tensors
from shardproof.models.stages import Chunk

CASES = json.loads((Path(__file__).parent / "data" / "fsdp2.json").read_text())


def architecture_of(model):
    heads, hidden = model["num_attention_heads"], model["hidden_size"]
    kv_heads, head_dim = model["num_key_value_heads"], hidden // heads
    layer = Layer(
        attention=Attention(heads=heads, kv_heads=kv_heads, head_dim=head_dim),
        feed_forward=DenseFFN(ffn=model["intermediate_size"], gated=True),
    )
    return Architecture(
        name="case",
        hidden=hidden,
        vocab=model["vocab_size"],
        layers=(layer,) * model["num_hidden_layers"],
        tied=model["tie_word_embeddings"],
    )


def state_of(case):
    values = {n: (1,) for n in (*DECIDED, *DERIVED)}
    sharding = SHARDINGS.index("fsdp2")
    values |= {"dp": (case["ranks"],), "sharding": (sharding,), "recompute": (0,)}
    return State(architecture_of(case["model"]), Dims.of(values), "adam-fp32", 1)


def stage_of(case):
    layers = case["model"]["num_hidden_layers"]
    return (Chunk(layers=(layers,), mtp=0, embedding=True, head=True),)


def label(entry):
    case = entry["case"]
    return f"{entry['name']}-{case['ranks']}-{case['reduce']}"


def divides(case):
    """Whether no parameter's rows are padded on this many ranks.

    transformers has queries, keys and values, and the halves of gated networks, apart.
    """
    model = case["model"]
    head_dim = model["hidden_size"] // model["num_attention_heads"]
    rows = (
        model["hidden_size"],
        model["vocab_size"],
        model["intermediate_size"],
        model["num_key_value_heads"] * head_dim,
    )
    return all(size % case["ranks"] == 0 for size in rows)


@pytest.mark.parametrize("entry", CASES, ids=label)
def test_shards(entry):
    case, state = entry["case"], state_of(entry["case"])
    numbers = value(state.counts(state.numbers(stage_of(case)))[0], {})
    assert numbers == entry["params"]
    parts = dict(state.bytes(stage_of(case)))
    for part, size in (
        ("weights", entry["weights"]),
        ("gradients", entry["gradients"]),
        ("optimizer states", entry["states"]),
    ):
        ours = value(parts[f"{part} of dense layers"], {})
        if divides(case):
            assert ours == size
        else:
            # Of rank 0, whose rows of every parameter are rounded up.
            arch = state.architecture
            tensors = [*embedding_tensors(arch), *head_tensors(arch)]
            tensors += [t for layer in arch.layers for t in layer_tensors(arch, layer)]
            row = sum(prod(t.shape[1:]) * 3 for t in tensors)
            assert ours <= size <= ours + 8 * row


@pytest.mark.parametrize("entry", CASES, ids=label)
def test_working_set_of_a_backward_pass(entry):
    case, state, found = entry["case"], state_of(entry["case"]), entry["working"]
    if case["reduce"] == "bfloat16":
        found = found | {"REDUCE_SCATTER": 2 * found["REDUCE_SCATTER"]}
    ours, theirs = value(working_set(state, stage_of(case)), {}), sum(found.values())
    if divides(case):
        assert ours == theirs
    else:
        assert ours <= theirs < 1.01 * ours


def test_cases_are_of_several_models_and_ranks():
    assert len({entry["name"] for entry in CASES}) >= 6
    assert len({entry["case"]["ranks"] for entry in CASES}) >= 4
