"""Families of mixtures of experts over grouped-query attention.

Which parts have biases follows ``transformers``' modelling code of each family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...architecture import Architecture, DenseFFN, MoE
from ...errors import InputError
from .common import build, gated, grouped, layer_count, sparse_layers, windows
from .dense import qwen_windows, with_windows

if TYPE_CHECKING:
    from ..node import Node


def mixtral(node: Node, name: str) -> Architecture:
    """Read Mixtral: every layer a mixture, a window if one is given."""
    layers = layer_count(node)
    moe = MoE(
        experts=node.whole("num_local_experts"),
        topk=node.whole("num_experts_per_tok"),
        ffn=node.whole("intermediate_size"),
        gated=True,
    )
    attention = grouped(node, node.whole("hidden_size"))
    slides = [node.maybe_whole("sliding_window")] * layers
    return build(node, name, with_windows(attention, [moe] * layers, slides))


def _qwen_networks(node: Node, layers: int, moe: MoE) -> list[DenseFFN | MoE]:
    """Return each layer's network; the dense width counts only if one is dense."""
    sparse = sparse_layers(node, layers)
    node.skip("intermediate_size")
    if all(sparse):
        return [moe] * layers
    dense = gated(node)
    return [moe if is_sparse else dense for is_sparse in sparse]


def qwen2_moe(node: Node, name: str) -> Architecture:
    """Read Qwen 1.5 and 2 mixtures: a gated shared expert."""
    layers = layer_count(node)
    moe = MoE(
        experts=node.whole("num_experts"),
        topk=node.whole("num_experts_per_tok"),
        ffn=node.whole("moe_intermediate_size"),
        gated=True,
        shared_ffn=node.whole("shared_expert_intermediate_size"),
        shared_gate=True,
    )
    bias = node.flag("qkv_bias", True)
    attention = grouped(node, node.whole("hidden_size"), bias=bias, out_bias=False)
    networks = _qwen_networks(node, layers, moe)
    slides = qwen_windows(node, layers)
    return build(node, name, with_windows(attention, networks, slides))


def qwen3_moe(node: Node, name: str) -> Architecture:
    """Read Qwen3 mixtures: norms of queries and keys per head."""
    layers = layer_count(node)
    moe = MoE(
        experts=node.whole("num_experts"),
        topk=node.whole("num_experts_per_tok"),
        ffn=node.whole("moe_intermediate_size"),
        gated=True,
    )
    bias = node.flag("attention_bias", False)
    attention = grouped(node, node.whole("hidden_size"), bias=bias, qk_norm="head")
    networks = _qwen_networks(node, layers, moe)
    slides = qwen_windows(node, layers)
    return build(node, name, with_windows(attention, networks, slides))


def gpt_oss(node: Node, name: str) -> Architecture:
    """Read gpt-oss: sinks, biases everywhere, every other layer slides."""
    layers = layer_count(node)
    moe = MoE(
        experts=node.whole("num_local_experts"),
        topk=node.whole("num_experts_per_tok"),
        ffn=node.whole("intermediate_size"),
        gated=True,
        bias=True,
        router_bias=True,
    )
    bias = node.flag("attention_bias", True)
    node.whole("head_dim")  # its default is a number, not the hidden width shared out
    attention = grouped(node, node.whole("hidden_size"), bias=bias, sinks=True)
    usual = [i % 2 == 0 for i in range(layers)]
    slides = windows(node, layers, node.maybe_whole("sliding_window"), usual)
    return build(node, name, with_windows(attention, [moe] * layers, slides))


def first_dense(node: Node, layers: int) -> int:
    """Return how many layers in front are dense."""
    first = node.whole("first_k_dense_replace", least=0)
    if first > layers:
        raise InputError(
            f"first_k_dense_replace of {node.label} is at most the {layers} layers, "
            f"got {first}"
        )
    return first


def shared_width(node: Node) -> int:
    """Return the summed width of the shared experts."""
    if "n_shared_experts" not in node.names():
        raise InputError(f"{node.label} needs the field n_shared_experts")
    shared = node.whole("n_shared_experts", 0, least=0)
    return shared * node.whole("moe_intermediate_size")


def glm4_moe(node: Node, name: str) -> Architecture:
    """Read GLM-4.5: dense layers in front, biases of queries, keys and values."""
    layers = layer_count(node)
    first = first_dense(node, layers)
    moe = MoE(
        experts=node.whole("n_routed_experts"),
        topk=node.whole("num_experts_per_tok"),
        ffn=node.whole("moe_intermediate_size"),
        gated=True,
        shared_ffn=shared_width(node),
        score_bias=True,
        scoring="sigmoid",
    )
    attention = grouped(
        node,
        node.whole("hidden_size"),
        bias=node.flag("attention_bias", False),
        out_bias=False,
        qk_norm="head" if node.flag("use_qk_norm", False) else "none",
    )
    networks = [gated(node)] * first + [moe] * (layers - first)
    blocks = with_windows(attention, networks, [None] * layers)
    mtp = node.whole("num_nextn_predict_layers", 0, least=0)
    return build(node, name, blocks, mtp_layers=mtp)
