"""Families before Llama: GPT-2, GPT-NeoX, MPT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...architecture import Architecture, Attention, DenseFFN, Layer
from ...errors import InputError
from ..text import brief
from .common import build, grouped, head_width, layer_count

if TYPE_CHECKING:
    from ..node import Node


def _multi_head(heads: int, head_dim: int, *, bias: bool) -> Attention:
    return Attention(
        heads=heads, kv_heads=heads, head_dim=head_dim, qkv_bias=bias, out_bias=bias
    )


def gpt2(node: Node, name: str) -> Architecture:
    """Read GPT-2: learned positions, layer norms, biases, tied embeddings."""
    hidden, heads = node.whole("n_embd"), node.whole("n_head")
    positions = node.whole("n_positions")
    node.skip("n_ctx")  # the attention mask of old files; always n_positions
    layer = Layer(
        attention=_multi_head(heads, head_width(node, hidden, heads), bias=True),
        feed_forward=DenseFFN(
            ffn=node.whole("n_inner", 4 * hidden), gated=False, bias=True
        ),
    )
    return Architecture(
        name=name,
        hidden=hidden,
        vocab=node.whole("vocab_size"),
        layers=(layer,) * layer_count(node, "n_layer"),
        norm="layer",
        norm_bias=True,
        position="learned",
        max_positions=positions,
        tied=node.flag("tie_word_embeddings", True),
        source="a Hugging Face config.json, gpt2",
    )


def gpt_neox(node: Node, name: str) -> Architecture:
    """Read GPT-NeoX and Pythia: rotary positions, layer norms, biases."""
    bias = node.flag("attention_bias", True)
    layer = Layer(
        attention=grouped(node, node.whole("hidden_size"), bias=bias, optional=True),
        feed_forward=DenseFFN(
            ffn=node.whole("intermediate_size"), gated=False, bias=True
        ),
    )
    layers = [layer] * layer_count(node)
    return build(node, name, layers, norm="layer", norm_bias=True)


def _mpt_attention(node: Node, hidden: int) -> Attention:
    """Read the attention of MPT: multi-head with ALiBi, as transformers builds it."""
    if "attn_config" not in node:
        raise InputError(f"{node.label} needs the field attn_config")
    inner = node.node("attn_config")
    kind = inner.text("attn_type", "multihead_attention")
    wanted = {"alibi": True, "qk_ln": False, "qk_gn": False, "rope": False}
    given = {name: inner.flag(name, value) for name, value in wanted.items()}
    if kind != "multihead_attention" or given != wanted:
        raise InputError(
            f"{inner.label} must be multihead_attention with alibi and no norms, which "
            f"is what transformers builds, got {brief({'attn_type': kind, **given})}; "
            "write other kinds in the YAML form of the catalogue"
        )
    inner.skip("attn_impl", "attn_pdrop", "clip_qkv", "softmax_scale", "prefix_lm")
    inner.skip("attn_uses_sequence_id", "alibi_bias_max", "model_type", "kv_n_heads")
    inner.skip("fused_qkv", "rope_theta", "rope_impl", "rope_dail_config")
    inner.skip("rope_hf_config", "sliding_window_size")
    inner.done()
    heads = node.whole("n_heads")
    return _multi_head(heads, head_width(node, hidden, heads), bias=False)


def mpt(node: Node, name: str) -> Architecture:
    """Read MPT: ALiBi, no biases, tied embeddings.

    ``transformers`` builds this whatever ``learned_pos_emb``, ``no_bias`` and
    ``expansion_ratio`` say, llm-foundry does not; so only what both build is read.
    """
    hidden = node.whole("d_model")
    attention = _mpt_attention(node, hidden)
    node.skip("learned_pos_emb")  # of no effect beside ALiBi
    for field, value, wanted in (
        ("expansion_ratio", node.whole("expansion_ratio"), 4),
        ("no_bias", node.flag("no_bias", True), True),
    ):
        if value != wanted:
            raise InputError(
                f"{field} of {node.label} must be {brief(wanted)}, which transformers "
                f"takes whatever is given, got {brief(value)}; write other kinds in "
                "the YAML form of the catalogue"
            )
    node.choice("norm_type", ("low_precision_layernorm", "layernorm"), "layernorm")
    layer = Layer(
        attention=attention, feed_forward=DenseFFN(ffn=4 * hidden, gated=False)
    )
    return Architecture(
        name=name,
        hidden=hidden,
        vocab=node.whole("vocab_size"),
        layers=(layer,) * layer_count(node, "n_layers"),
        norm="layer",
        position="alibi",
        max_positions=node.whole("max_seq_len"),
        tied=node.flag("tie_word_embeddings", True),
        source="a Hugging Face config.json, mpt",
    )
