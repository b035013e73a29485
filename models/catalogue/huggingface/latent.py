"""Families of multi-head latent attention: DeepSeek V2 and V3, Kimi K2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...architecture import Architecture, LatentAttention, Layer, MoE
from ...errors import InputError
from .common import build, gated, layer_count
from .mixtures import first_dense, shared_width

if TYPE_CHECKING:
    from ..node import Node


def _attention(node: Node) -> LatentAttention:
    if node.flag("attention_bias", False):
        raise InputError(
            f"{node.label}: attention_bias of latent attention is not supported, "
            "no published model has it"
        )
    if "q_lora_rank" not in node.names():
        raise InputError(f"{node.label} needs the field q_lora_rank, which may be null")
    # Both follow from the ranks and head widths below; transformers ignores them.
    node.skip("num_key_value_heads", "head_dim", "qk_head_dim")
    return LatentAttention(
        heads=node.whole("num_attention_heads"),
        q_rank=node.maybe_whole("q_lora_rank"),
        kv_rank=node.whole("kv_lora_rank"),
        nope_dim=node.whole("qk_nope_head_dim"),
        rope_dim=node.whole("qk_rope_head_dim"),
        v_dim=node.whole("v_head_dim"),
    )


def _layers(node: Node, *, balanced: bool) -> list[Layer]:
    """Return dense layers in front and mixtures behind.

    ``balanced`` mixtures score by a sigmoid and have a selection bias.
    """
    layers = layer_count(node)
    if node.whole("moe_layer_freq", 1) != 1:
        raise InputError(
            f"moe_layer_freq of {node.label} must be 1, got "
            f"{node.peek('moe_layer_freq')}"
        )
    attention = _attention(node)
    first = first_dense(node, layers)
    usual = "sigmoid" if balanced else "softmax"
    scoring = node.choice("scoring_func", ("softmax", "sigmoid"), usual)
    moe = MoE(
        experts=node.whole("n_routed_experts"),
        topk=node.whole("num_experts_per_tok"),
        ffn=node.whole("moe_intermediate_size"),
        gated=True,
        shared_ffn=shared_width(node),
        score_bias=balanced,
        scoring="sigmoid" if scoring == "sigmoid" else "softmax",
    )
    front = Layer(attention=attention, feed_forward=gated(node))
    behind = Layer(attention=attention, feed_forward=moe)
    return [front] * first + [behind] * (layers - first)


def deepseek_v2(node: Node, name: str) -> Architecture:
    """Read DeepSeek V2."""
    return build(node, name, _layers(node, balanced=False))


def deepseek_v3(node: Node, name: str) -> Architecture:
    """Read DeepSeek V3, R1 and Kimi K2, which may have prediction layers behind."""
    layers = _layers(node, balanced=True)
    mtp = node.whole("num_nextn_predict_layers", 0, least=0)
    return build(node, name, layers, mtp_layers=mtp)
