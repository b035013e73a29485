"""Time of a whole layer: its pieces, what is recomputed, and the host's floor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .attention import attention_work
from .feed_forward import feed_forward_work
from .kernels import WIDTH
from .work import Floats, Work

if TYPE_CHECKING:
    from ..architecture import Layer
    from .pricer import Pricer

#: Pieces that a recompute module runs again, beside those of its own name.
_ALSO = {
    "router": ("moe",),
    "experts": ("moe",),
    "moe_act": ("moe",),
    "shared_experts": ("moe",),
}
#: Pieces that only full recomputation runs again.
_FULL_ONLY = ("attn_proj", "residual", "router", "experts")


def layer_work(p: Pricer, layer: Layer) -> Work:
    """Price one layer for one micro-batch, recomputation included."""
    pieces = {
        "layernorm": _norms(p, layer.norms),
        "residual": _residual(p),
        **attention_work(p, layer.attention),
        **feed_forward_work(p, layer.feed_forward),
    }
    whole = Work()
    again: Floats = np.zeros_like(p.shape.tp)
    for name, piece in pieces.items():
        whole += piece
        again = again + _recomputed(p, name) * piece.forward_time
    whole += Work({}, {"recompute": again})
    return with_host(p, whole, layer.is_moe)


def _recomputed(p: Pricer, piece: str) -> Floats:
    """Return 1 where the backward runs a piece's forward again, else 0."""
    share = p.shape.full_recompute
    modules = _ALSO.get(piece, ())
    if piece not in _FULL_ONLY:
        modules = (piece, *modules)
    for module in modules:
        share = np.maximum(share, p.shape.recomputes(module))
    return share


def _norms(p: Pricer, norms: int) -> Work:
    """Price the block's norms: read and written, the backward with one read more."""
    number = p.shape.own_tokens * p.hidden * WIDTH * norms
    return p.kernels.passes(2 * number, 3 * number)


def _residual(p: Pricer) -> Work:
    """Price the two additions to the residual stream: two reads and a write each."""
    number = p.shape.own_tokens * p.hidden * WIDTH
    return p.kernels.passes(2 * 3 * number, 2 * 2 * number)


def with_host(p: Pricer, work: Work, moe: bool = False) -> Work:
    """Add the time that the device waits for the host to launch kernels.

    Device time G and host time H make (G^3 + H^3)^(1/3): the longer one where they
    differ, more than either where they are close.
    """
    stack = p.profile.stack
    plain = stack.host_layer + (stack.host_moe if moe else 0.0)
    host: Floats = plain * (1 + stack.host_tp * np.log2(p.shape.tp))
    ahead = _waiting(work.forward_time, host)
    launched = host * stack.host_backward + host * p.shape.full_recompute
    back = _waiting(work.backward_time, launched)
    return work + Work({"host": ahead}, {"host": back})


def _waiting(device: Floats, host: Floats) -> Floats:
    ratio = host / device
    waiting: Floats = device * (np.cbrt(1 + ratio * ratio * ratio) - 1)
    return waiting
