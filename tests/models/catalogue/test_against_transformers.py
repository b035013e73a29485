"""Every parameter's shape, against the models that ``transformers`` builds."""

import json
import math
from pathlib import Path

import pytest

from shardproof.models.architecture import LatentAttention
from shardproof.models.catalogue.huggingface import read_config
from shardproof.models.parameters import (
    embedding_tensors,
    head_tensors,
    layer_tensors,
    parameter_count,
)

CASES = {
    path.stem: json.loads(path.read_text("utf-8"))["config"]
    for path in sorted((Path(__file__).parent / "data").glob("*.json"))
}
#: Options that change shapes, each with the real configuration it is changed in.
CHANGES = [
    ("llama-3.1-70b", {"attention_bias": True, "mlp_bias": True}),
    ("llama-3.1-70b", {"head_dim": 96, "num_key_value_heads": None}),
    ("llama-3.2-1b", {"tie_word_embeddings": False}),
    ("mistral-7b", {"head_dim": 160, "num_key_value_heads": 4}),
    ("mixtral-8x22b", {"head_dim": 64, "num_local_experts": 3}),
    ("qwen2.5-7b", {"tie_word_embeddings": True, "use_sliding_window": True}),
    ("qwen1.5-moe-a2.7b", {"qkv_bias": False, "decoder_sparse_step": 2}),
    ("qwen3-8b", {"attention_bias": True, "head_dim": 64}),
    ("qwen3-30b-a3b", {"mlp_only_layers": [0, 3], "attention_bias": True}),
    ("qwen3-30b-a3b", {"decoder_sparse_step": 3}),
    ("deepseek-v2-lite", {"q_lora_rank": 768, "n_shared_experts": 1}),
    ("deepseek-v3", {"q_lora_rank": None, "first_k_dense_replace": 0}),
    ("glm-4.5", {"attention_bias": False, "use_qk_norm": False}),
    ("gemma-2-27b", {"attention_bias": True, "tie_word_embeddings": False}),
    ("phi-3-mini", {"num_key_value_heads": 8, "tie_word_embeddings": True}),
    ("gpt-oss-20b", {"attention_bias": False, "num_experts_per_tok": 2}),
    ("gpt2-xl", {"n_inner": 5000, "tie_word_embeddings": False}),
    ("gpt-neox-20b", {"attention_bias": False, "use_parallel_residual": False}),
    ("mpt-7b", {"d_model": 2048, "n_heads": 16, "vocab_size": 1000}),
]
LAYERS = ("num_hidden_layers", "n_layer", "n_layers")


def shortened(config, layers=4):
    """Return a configuration of few layers."""
    few = {k: layers for k in LAYERS if k in config}
    if "layer_types" in config:
        few["layer_types"] = config["layer_types"][:layers]
    return {**config, **few}


def assert_agrees(config):
    pytest.importorskip("transformers", reason="the oracle extra is not installed")
    from transformers_shapes import build, in_our_names

    arch = read_config(config, "config.json")
    parameters = build(config)
    latent = isinstance(arch.layers[0].attention, LatentAttention)
    outside, layers = in_our_names(parameters, latent)
    ours = {t.name: t.shape for t in embedding_tensors(arch) + head_tensors(arch)}
    if arch.tied:
        assert ours.pop("output_layer.weight") == ours["word_embeddings.weight"]
    assert ours == outside
    assert len(layers) == arch.num_layers
    for layer, theirs in zip(arch.layers, layers, strict=True):
        assert {t.name: t.shape for t in layer_tensors(arch, layer)} == _like_ours(
            theirs, layer_tensors(arch, layer)
        )
    assert parameter_count(arch) == sum(math.prod(shape) for _, shape in parameters)


def _like_ours(theirs, ours):
    """Turn experts' matrices that are stored the other way round (gpt-oss)."""
    wanted = {t.name: t.shape for t in ours}
    return {
        name: (shape[0], *shape[:0:-1])
        if name.startswith("experts.") and shape != wanted.get(name)
        else shape
        for name, shape in theirs.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_real_model_has_our_shapes(name):
    assert_agrees(CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_an_option_changes_the_same_shapes(name, change):
    assert_agrees({**shortened(CASES[name]), **change})
