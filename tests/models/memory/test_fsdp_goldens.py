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


#: Families whose layers differ from Llama's, and how: transformers' modelling files.
ATTENTIONS = {
    "qwen2": {"qkv_bias": True},
    "qwen3": {"qk_norm": "head"},
    "starcoder2": {"qkv_bias": True, "out_bias": True},
}
NETWORKS = {
    "starcoder2": {"gated": False, "bias": True},
    "nemotron": {"gated": False},
}
#: Families whose norms are layer norms with a bias.
BIASED_NORMS = ("starcoder2", "nemotron")


def head_dim_of(model):
    whole = model["hidden_size"] // model["num_attention_heads"]
    return model.get("head_dim", whole)


def architecture_of(case):
    model, family = case["model"], case.get("family", "llama")
    biased = model.get("attention_bias", False)
    attention = {"qkv_bias": biased, "out_bias": biased}
    network = {"gated": True, "bias": model.get("mlp_bias", False)}
    layer = Layer(
        attention=Attention(
            heads=model["num_attention_heads"],
            kv_heads=model["num_key_value_heads"],
            head_dim=head_dim_of(model),
            **(attention | ATTENTIONS.get(family, {})),
        ),
        feed_forward=DenseFFN(
            ffn=model["intermediate_size"], **(network | NETWORKS.get(family, {}))
        ),
    )
    return Architecture(
        name="case",
        hidden=model["hidden_size"],
        vocab=model["vocab_size"],
        layers=(layer,) * model["num_hidden_layers"],
        tied=model["tie_word_embeddings"],
        norm="layer" if family in BIASED_NORMS else "rms",
        norm_bias=family in BIASED_NORMS,
    )


def state_of(case):
    values = {n: (1,) for n in (*DECIDED, *DERIVED)}
    sharding = SHARDINGS.index("fsdp2")
    values |= {"dp": (case["ranks"],), "sharding": (sharding,), "recompute": (0,)}
    return State(architecture_of(case), Dims.of(values), "adam-fp32", 1)


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
    model, head_dim = case["model"], head_dim_of(case["model"])
    rows = [
        model["hidden_size"],
        model["vocab_size"],
        model["intermediate_size"],
        model["num_key_value_heads"] * head_dim,
    ]
    if case.get("family") == "qwen3":
        rows.append(head_dim)
    return all(size % case["ranks"] == 0 for size in rows)


def gathers_when_fullest(case):
    """Whether the tracker's fullest moment is one at which a layer is gathered.

    It looks at the moments with most bytes in all. The only layer of a model is not
    gathered while another is reduced, and scores of attention that are larger than a
    gathered layer outweigh it; what is counted is then a bound.
    """
    model = case["model"]
    tokens = case.get("batch", 1) * case.get("sequence", 16) ** 2
    scores = 4 * model["num_attention_heads"] * tokens
    arch = architecture_of(case)
    gathered = 2 * sum(t.count for t in layer_tensors(arch, arch.layers[0]))
    return model["num_hidden_layers"] > 1 and scores < gathered


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
    if not gathers_when_fullest(case):
        assert theirs <= ours
    elif divides(case):
        assert ours == theirs
    else:
        assert ours <= theirs < 1.01 * ours


def test_cases_are_of_several_models_and_ranks():
    exact = [e for e in CASES if divides(e["case"]) and gathers_when_fullest(e["case"])]
    assert len(exact) >= 50
    assert len({entry["name"] for entry in exact}) >= 15
    assert len({entry["case"].get("family", "llama") for entry in exact}) >= 6
    assert len({entry["case"]["ranks"] for entry in exact}) >= 8
