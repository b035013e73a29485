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


def _mpt_attention(node: Node, hidden: int, *, bias: bool) -> tuple[Attention, bool]:
    """Read the attention of MPT and whether its positions are by ALiBi."""
    heads = node.whole("n_heads")
    head_dim = head_width(node, hidden, heads)
    if "attn_config" not in node:
        raise InputError(f"{node.label} needs the field attn_config")
    inner = node.node("attn_config")
    kind = inner.text("attn_type", "multihead_attention")
    shared = {"multihead_attention": heads, "multiquery_attention": 1}
    if kind not in (*shared, "grouped_query_attention"):
        raise InputError(f"attn_type of {inner.label} is not known, got {brief(kind)}")
    kv_heads = shared[kind] if kind in shared else inner.whole("kv_n_heads")
    inner.skip("kv_n_heads")
    if inner.flag("qk_ln", False) or inner.flag("qk_gn", False):
        raise InputError(
            f"norms of queries and keys in {inner.label} are not supported"
        )
    alibi = inner.flag("alibi", False)
    inner.skip("attn_impl", "attn_pdrop", "clip_qkv", "softmax_scale", "prefix_lm")
    inner.skip("attn_uses_sequence_id", "alibi_bias_max", "model_type")
    inner.skip("fused_qkv", "rope", "rope_theta", "rope_impl", "rope_dail_config")
    inner.skip("rope_hf_config", "sliding_window_size")
    inner.done()
    found = Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        qkv_bias=bias,
        out_bias=bias,
    )
    return found, alibi


def mpt(node: Node, name: str) -> Architecture:
    """Read MPT: ALiBi or learned positions, no biases, tied embeddings."""
    hidden = node.whole("d_model")
    bias = not node.flag("no_bias", True)
    attention, alibi = _mpt_attention(node, hidden, bias=bias)
    learned = node.flag("learned_pos_emb", True) and not alibi
    ratio = node.whole("expansion_ratio")
    norm = node.choice(
        "norm_type", ("low_precision_layernorm", "layernorm"), "layernorm"
    )
    assert norm
    layer = Layer(
        attention=attention,
        feed_forward=DenseFFN(ffn=ratio * hidden, gated=False, bias=bias),
    )
    return Architecture(
        name=name,
        hidden=hidden,
        vocab=node.whole("vocab_size"),
        layers=(layer,) * layer_count(node, "n_layers"),
        norm="layer",
        norm_bias=bias,
        position="learned" if learned else "alibi" if alibi else "none",
        max_positions=node.whole("max_seq_len"),
        tied=node.flag("tie_word_embeddings", True),
        source="a Hugging Face config.json, mpt",
    )
