"""Families of dense decoder layers: Llama, Mistral, Qwen, Gemma 2, Phi-3.

Which projections have biases follows ``transformers``' modelling code of each family.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...architecture import Architecture, Attention, DenseFFN, Layer, MoE
from .common import build, gated, grouped, layer_count, windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..node import Node


def with_windows(
    attention: Attention,
    networks: Sequence[DenseFFN | MoE],
    slides: Sequence[int | None],
    norms: int = 2,
) -> list[Layer]:
    """Return layers of one attention with each layer's network and window."""
    return [
        Layer(
            attention=replace(attention, window=window),
            feed_forward=network,
            norms=norms,
        )
        for network, window in zip(networks, slides, strict=True)
    ]


def llama(node: Node, name: str) -> Architecture:
    """Read Llama 1 to 3; ``attention_bias`` is of all four projections."""
    layers = layer_count(node)
    bias = node.flag("attention_bias", False)
    layer = Layer(
        attention=grouped(node, node.whole("hidden_size"), bias=bias, optional=True),
        feed_forward=gated(node, bias=node.flag("mlp_bias", False)),
    )
    return build(node, name, [layer] * layers)


def mistral(node: Node, name: str) -> Architecture:
    """Read Mistral: Llama with a window on every layer and no biases."""
    layers = layer_count(node)
    slides = [node.maybe_whole("sliding_window")] * layers
    slides = windows(node, layers, slides[0], [True] * layers)
    attention = grouped(node, node.whole("hidden_size"))
    return build(node, name, with_windows(attention, [gated(node)] * layers, slides))


def qwen_windows(node: Node, layers: int) -> list[int | None]:
    """Return Qwen's windows: the layers from ``max_window_layers`` on, if at all."""
    used = node.flag("use_sliding_window", False)
    window = node.maybe_whole("sliding_window")
    first = node.whole("max_window_layers", layers, least=0)
    usual = [used and i >= first for i in range(layers)]
    return windows(node, layers, window if used else None, usual)


def qwen2(node: Node, name: str) -> Architecture:
    """Read Qwen 1.5 to 2.5: biases of queries, keys and values."""
    layers = layer_count(node)
    attention = grouped(node, node.whole("hidden_size"), bias=True, out_bias=False)
    slides = qwen_windows(node, layers)
    return build(node, name, with_windows(attention, [gated(node)] * layers, slides))


def qwen3(node: Node, name: str) -> Architecture:
    """Read Qwen3: norms of queries and keys per head."""
    layers = layer_count(node)
    bias = node.flag("attention_bias", False)
    hidden = node.whole("hidden_size")
    node.whole("head_dim")  # its default is a number, not the hidden width shared out
    attention = grouped(node, hidden, bias=bias, qk_norm="head")
    slides = qwen_windows(node, layers)
    return build(node, name, with_windows(attention, [gated(node)] * layers, slides))


def gemma2(node: Node, name: str) -> Architecture:
    """Read Gemma 2: four norms, every other layer slides, embeddings tied."""
    layers = layer_count(node)
    bias = node.flag("attention_bias", False)
    hidden = node.whole("hidden_size")
    node.whole("head_dim")  # its default is a number, not the hidden width shared out
    attention = grouped(node, hidden, bias=bias)
    usual = [i % 2 == 0 for i in range(layers)]
    slides = windows(node, layers, node.maybe_whole("sliding_window"), usual)
    blocks = with_windows(attention, [gated(node)] * layers, slides, norms=4)
    return build(node, name, blocks, tied=True)


def phi3(node: Node, name: str) -> Architecture:
    """Read Phi-3 and Phi-4: fused projections without biases, a window."""
    layers = layer_count(node)
    attention = grouped(node, node.whole("hidden_size"), optional=True)
    slides = [node.maybe_whole("sliding_window")] * layers
    return build(node, name, with_windows(attention, [gated(node)] * layers, slides))
