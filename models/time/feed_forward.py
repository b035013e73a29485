"""Time of the feed-forward half of a layer: dense networks and mixtures of experts.

Letters: h hidden, f width of a network, t tokens in matrix products, E experts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..architecture import DenseFFN, MoE
from .kernels import WIDTH
from .work import Floats, Work

if TYPE_CHECKING:
    from .pricer import Pricer


def feed_forward_work(p: Pricer, network: DenseFFN | MoE) -> dict[str, Work]:
    """Price the feed-forward network.

    Returns
    -------
    dict
        ``mlp``, or ``router``, ``experts``, ``moe_act`` and ``shared_experts``: the
        pieces that may be recomputed apart.
    """
    if isinstance(network, DenseFFN):
        return {"mlp": _network(p, network.ffn, network.gated)}
    return _mixture(p, network)


def _activation(p: Pricer, tokens: Floats, width: Floats, gated: bool) -> Work:
    """Price the activation: inputs and output, then those and two gradients."""
    inputs = 2 if gated else 1
    number = tokens * width * WIDTH
    return p.kernels.passes(number * (inputs + 1), number * (2 * inputs + 1))


def _network(p: Pricer, ffn: int, gated: bool) -> Work:
    shape, h, t = p.shape, p.hidden, p.shape.tokens
    width = ffn / shape.tp
    return (
        p.kernels.gemm(t, h, width * (2 if gated else 1))
        + p.kernels.gemm(t, width, h)
        + _activation(p, t, width, gated)
        + p.crossing(h, h)
    )


def _mixture(p: Pricer, moe: MoE) -> dict[str, Work]:
    """Price a mixture whose tokens spread evenly and none is dropped.

    A rank's own tokens go to ``topk`` experts each; a group of etp ranks shares the
    experts of one ep rank and the tokens that all of them hold for those.
    """
    shape, h = p.shape, p.hidden
    own, ep, etp = shape.own_tokens, shape.axis("ep"), shape.axis("etp")
    groups = moe.experts / ep
    routed = own * moe.topk  # copies of tokens that a rank sends, and receives
    # What the busiest experts take, or the slots that a capacity factor pads to.
    routed = routed * p.run.routed
    per_expert = routed * etp / groups
    width = moe.ffn / etp
    # Projection and scores in fp32, softmax and selection: six passes of 4 bytes.
    scored = own * moe.experts * 4
    router = p.kernels.gemm(own, h, float(moe.experts), in_recipe=False)
    router += p.kernels.passes(6 * scored, 6 * scored)
    experts = (
        p.kernels.grouped_gemm(
            per_expert, float(h), width * (2 if moe.gated else 1), groups
        )
        + p.kernels.grouped_gemm(per_expert, width, float(h), groups)
        + _permute(p, own, routed * etp)
        + _dispatch(p, routed, ep, etp)
    )
    work = {
        "router": router,
        "experts": experts,
        "moe_act": _activation(p, routed * etp, width, moe.gated),
    }
    if moe.shared_ffn:
        work["shared_experts"] = _network(p, moe.shared_ffn, moe.gated)
    return work


def _permute(p: Pricer, own: Floats, received: Floats) -> Work:
    """Price sorting tokens by rank, then by expert, and both undone.

    Source: Megatron-Core's all-to-all token dispatcher.
    """
    row = p.hidden * WIDTH
    moved = row * (2 * (own + received) + 2 * (2 * received))
    return p.kernels.passes(moved, moved, "permute")


def _dispatch(p: Pricer, routed: Floats, ep: Floats, etp: Floats) -> Work:
    """Price sending tokens to their experts and back, and sharing them over etp."""
    links, row = p.shape.links, p.hidden * WIDTH
    ones = np.ones_like(etp)
    send = links.all_to_all(ep, etp, routed * row)
    share = links.ring("all_gather", etp, ones, routed * etp * row)
    collect = links.ring("reduce_scatter", etp, ones, routed * etp * row)
    stack = p.profile.stack
    exposed = stack.ep_exposed * (1 - stack.ep_hidden if p.run.ep_overlap else 1.0)
    each_way = (2 * send + share + collect) * exposed
    return Work({"ep": each_way}, {"ep": each_way})
