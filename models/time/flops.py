"""Model FLOPs: what a step has to compute, however it is run.

Twice the multiply-adds of every matrix product a token meets, and attention; the
backward is twice the forward; nothing recomputed, no padding, chosen experts only.
Source: Narayanan et al. 2021, appendix, with causal attention halved on request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..architecture import Attention, DenseFFN
from ..units import Flops
from .attention import pairs_of

if TYPE_CHECKING:
    from ..architecture import Architecture, LatentAttention, Layer, MoE


def model_flops(
    architecture: Architecture, seq_len: int, sequences: int, *, causal: bool = True
) -> Flops:
    """Return the model FLOPs of one step.

    Parameters
    ----------
    architecture
        The model.
    seq_len, sequences
        Tokens of a sequence, and sequences of the step.
    causal
        Whether masked pairs of attention are left out; many published MFU count
        them.
    """
    arch = architecture
    layers = [_forward(arch, layer, seq_len, causal) for layer in arch.kinds]
    forward = sum(layers[k] for k in arch.kind_of_layer)
    head = 2.0 * seq_len * arch.hidden * arch.vocab
    joined = 2.0 * seq_len * arch.hidden * 2 * arch.hidden
    last = layers[arch.kind_of_layer[-1]]
    forward += head + arch.mtp_layers * (joined + last + head)
    return Flops(3.0 * sequences * forward)


def _forward(arch: Architecture, layer: Layer, seq_len: int, causal: bool) -> float:
    """FLOPs of a layer's forward of one sequence."""
    weights = _attention_weights(arch, layer.attention)
    weights += _network_weights(arch, layer.feed_forward)
    attention = layer.attention
    if isinstance(attention, Attention):
        channels = 2 * attention.head_dim
    else:
        channels = attention.nope_dim + attention.rope_dim + attention.v_dim
    pairs = pairs_of(seq_len, attention.window)
    if not causal:
        pairs = float(seq_len * min(seq_len, attention.window or seq_len))
    return 2.0 * seq_len * weights + 2.0 * pairs * attention.heads * channels


def _attention_weights(arch: Architecture, layer: Attention | LatentAttention) -> int:
    if isinstance(layer, Attention):
        return arch.hidden * layer.head_dim * 2 * (layer.heads + layer.kv_heads)
    query = layer.heads * (layer.nope_dim + layer.rope_dim)
    down = arch.hidden * (layer.kv_rank + layer.rope_dim)
    up = layer.kv_rank * layer.heads * (layer.nope_dim + layer.v_dim)
    if layer.q_rank is None:
        down += arch.hidden * query
    else:
        down, up = down + arch.hidden * layer.q_rank, up + layer.q_rank * query
    return down + up + layer.heads * layer.v_dim * arch.hidden


def _network_weights(arch: Architecture, layer: DenseFFN | MoE) -> int:
    inputs = 3 if layer.gated else 2
    if isinstance(layer, DenseFFN):
        return inputs * arch.hidden * layer.ffn
    used = layer.topk * layer.ffn + layer.shared_ffn
    return arch.hidden * (inputs * used + layer.experts)
