"""The numbers of a model and a run as a framework is told them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..architecture import Attention, DenseFFN, LatentAttention, MoE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..problem import Problem


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What rules may know of a model and a run; nothing here was checked before.

    Tuples hold one entry for each distinct value over the kinds of layers, empty
    where the model has no such layer.

    Attributes
    ----------
    world, domain
        Devices of the run and of one scale-up domain; a domain of 0 is unknown.
    seq_len, global_batch
        Tokens of a sequence; sequences of a step.
    layers, mtp_layers
        Decoder layers; multi-token-prediction layers, None if not given.
    hidden, heads, kv_heads, vocab
        Width, query heads, key/value heads, unpadded vocabulary.
    head_dim_given
        Whether the head width is given rather than hidden / heads.
    latent, latent_grouped
        Whether attention is latent (MLA), and is mixed with grouped queries.
    window, sinks, tied, bias
        Sliding windows, learnable softmax offsets, one tensor for both
        embeddings, biases in every linear layer.
    dense_ffn, expert_ffn, shared_ffn
        Widths of feed-forward layers of each sort.
    moe, experts
        Whether the model is told to have experts, and how many.
    topk, expert_ffn_given, moe_pattern
        Experts per token; whether an expert width is given, with experts or
        without; length of the list of sparse layers, None if there is no list.
    router_groups, router_group_topk, scoring, score_bias, pre_softmax, balancing
        The router; a group size of 0 is not given.
    formats
        Number formats of the device, empty if it is unknown.
    """

    world: int
    domain: int = 0
    seq_len: int
    global_batch: int
    layers: int
    mtp_layers: int | None = None
    hidden: int
    heads: tuple[int, ...]
    kv_heads: tuple[int, ...]
    vocab: int
    head_dim_given: bool = True
    latent: bool = False
    latent_grouped: bool = False
    window: bool = False
    sinks: bool = False
    tied: bool = False
    bias: bool = False
    dense_ffn: tuple[int, ...] = ()
    expert_ffn: tuple[int, ...] = ()
    shared_ffn: tuple[int, ...] = ()
    moe: bool = False
    experts: tuple[int, ...] = ()
    topk: int = 2
    expert_ffn_given: bool = False
    moe_pattern: int | None = None
    router_groups: int = 0
    router_group_topk: int = 0
    scoring: str = "softmax"
    score_bias: bool = False
    pre_softmax: bool = True
    balancing: str = "aux_loss"
    formats: tuple[str, ...] = ()

    @staticmethod
    def of(problem: Problem) -> Sizes:
        """Take the numbers of a problem."""
        arch, training = problem.architecture, problem.training
        attention = [k.attention for k in arch.kinds]
        blocks = [k.feed_forward for k in arch.kinds]
        grouped = [a for a in attention if isinstance(a, Attention)]
        dense = [b for b in blocks if isinstance(b, DenseFFN)]
        sparse = [b for b in blocks if isinstance(b, MoE)]
        latent = any(isinstance(a, LatentAttention) for a in attention)
        return Sizes(
            world=problem.cluster.world_size,
            domain=problem.cluster.domain_size,
            seq_len=training.seq_len,
            global_batch=training.global_batch,
            layers=arch.num_layers,
            mtp_layers=arch.mtp_layers or None,
            hidden=arch.hidden,
            heads=_distinct(a.heads for a in attention),
            kv_heads=_distinct(a.kv_heads for a in grouped),
            vocab=arch.vocab,
            latent=latent,
            latent_grouped=latent and bool(grouped),
            window=any(a.window is not None for a in attention),
            sinks=any(a.sinks for a in grouped),
            tied=arch.tied,
            bias=any(b.bias for b in blocks),
            dense_ffn=_distinct(b.ffn for b in dense),
            expert_ffn=_distinct(b.ffn for b in sparse),
            shared_ffn=_distinct(b.shared_ffn for b in sparse if b.shared_ffn),
            moe=bool(sparse),
            experts=_distinct(b.experts for b in sparse),
            topk=max((b.topk for b in sparse), default=2),
            expert_ffn_given=bool(sparse),
            scoring=sparse[0].scoring if sparse else "softmax",
            score_bias=any(b.score_bias for b in sparse),
            formats=problem.cluster.device.formats,
        )


def _distinct(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(values)))
