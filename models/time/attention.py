"""Time of the attention half of a layer.

Letters: h hidden, t tokens in matrix products, a heads, g key/value heads, d head
dim, s sequence length. Bytes are counted pass by pass; a projection that is divided
by tp has its widths divided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..architecture import Attention, LatentAttention
from .kernels import WIDTH
from .work import Work

if TYPE_CHECKING:
    from .pricer import Pricer


def pairs_of(seq_len: int, window: int | None) -> float:
    """Return the query-key pairs that causal attention computes in one sequence."""
    if window is None or window >= seq_len:
        return seq_len * seq_len / 2
    return seq_len * window - window * window / 2


def attention_work(p: Pricer, layer: Attention | LatentAttention) -> dict[str, Work]:
    """Price attention.

    Returns
    -------
    dict
        ``core_attn``, ``attn_proj``, and for latent attention ``mla_up_proj``: the
        pieces that may be recomputed apart.
    """
    if isinstance(layer, Attention):
        return _grouped(p, layer)
    return _latent(p, layer)


def _core(
    p: Pricer,
    layer: Attention | LatentAttention,
    query_dim: int,
    value_dim: int,
    kv_width: int,
) -> Work:
    """Price scores and output, and the ring that passes keys and values over cp."""
    shape = p.shape
    heads = shape.axis("mbs") * layer.heads / (shape.tp * shape.cp)
    keys = shape.seq_len / shape.cp
    if layer.window is not None:
        keys = np.minimum(keys, float(layer.window))
    if p.kernels.unfused:
        every = float(shape.seq_len) ** 2 * heads
        work = p.kernels.unfused_attention(every, query_dim, value_dim)
    else:
        pairs = pairs_of(shape.seq_len, layer.window) * heads
        work = p.kernels.attention(pairs, keys, query_dim, value_dim)
    volume = shape.tokens * kv_width / shape.tp * WIDTH
    send = shape.links.neighbour(shape.cp, shape.tp, volume)
    rounds = shape.cp - 1
    # A round's transfer runs behind the attention of the block before; the backward
    # passes keys and values and their gradients.
    ahead, back = work.forward_time / shape.cp, work.backward_time / shape.cp
    exposed = rounds * np.maximum(send - ahead, 0.0)
    returned = rounds * np.maximum(2 * send - back, 0.0)
    return work + Work({"cp": exposed}, {"cp": returned})


def _grouped(p: Pricer, layer: Attention) -> dict[str, Work]:
    shape, h, t = p.shape, p.hidden, p.shape.tokens
    queries = layer.heads * layer.head_dim
    values = layer.kv_heads * layer.head_dim
    projections = (
        p.kernels.gemm(t, h, (queries + 2 * values) / shape.tp)
        + p.kernels.gemm(t, queries / shape.tp, h)
        + p.crossing(h, h)
    )
    # The fused projection is cut into three tensors, and queries and keys rotated:
    # each a read and a write, the backward the same.
    moved = t / shape.tp * WIDTH * 2 * ((queries + 2 * values) + (queries + values))
    projections += p.kernels.passes(moved, moved)
    if layer.qk_norm != "none":
        normed = t / shape.tp * WIDTH * (queries + values)
        projections += p.kernels.passes(2 * normed, 3 * normed)
    core = _core(p, layer, layer.head_dim, layer.head_dim, 2 * values)
    return {"core_attn": core, "attn_proj": projections}


def _latent(p: Pricer, layer: LatentAttention) -> dict[str, Work]:
    shape, h, t, tp = p.shape, p.hidden, p.shape.tokens, p.shape.tp
    own = shape.own_tokens
    query_dim = layer.nope_dim + layer.rope_dim
    queries, values = layer.heads * query_dim, layer.heads * layer.v_dim
    # The down-projections are replicated over tp and run on a rank's own tokens.
    down = p.kernels.gemm(own, h, layer.kv_rank + layer.rope_dim)
    entering = layer.kv_rank + layer.rope_dim
    if layer.q_rank is None:
        up = p.kernels.gemm(t, h, queries / tp)
        entering += h
    else:
        down += p.kernels.gemm(own, h, layer.q_rank)
        up = p.kernels.gemm(t, layer.q_rank, queries / tp)
        entering += layer.q_rank
    normed = own * WIDTH * (layer.kv_rank + (layer.q_rank or 0))
    down += p.kernels.passes(2 * normed, 3 * normed)
    expanded = layer.heads * (layer.nope_dim + layer.v_dim)
    up += p.kernels.gemm(t, layer.kv_rank, expanded / tp)
    # Queries and keys are each split, rotated and joined: two reads and two writes;
    # values are copied once.
    moved = t / tp * WIDTH * (4 * queries + 4 * queries + 2 * values)
    up += p.kernels.passes(moved, moved)
    out = p.kernels.gemm(t, values / tp, h) + p.crossing(float(entering), h)
    core = _core(p, layer, query_dim, layer.v_dim, queries + values)
    return {"core_attn": core, "mla_up_proj": up, "attn_proj": down + out}
