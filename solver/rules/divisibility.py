"""Rules of divisibility: heads, widths, vocabulary, sequence and batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    FALSE,
    TRUE,
    Expr,
    at_least,
    both,
    divides,
    either,
    equals,
    implies,
    less,
)
from .rule import Rule
from .sources import (
    BATCHES,
    CONFIG,
    EMBEDDING,
    LAUNCHER,
    LINEAR,
    MOE_LAYER,
    PARALLEL,
    SCATTER,
    SHARED,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .facts import Facts


def _all_divide(part: Expr, wholes: Iterable[int]) -> Expr:
    return both(*(divides(part, whole) for whole in wholes))


def _kv_heads(facts: Facts) -> Expr:
    tp = facts.dims.tp
    return both(*(either(divides(tp, g), divides(g, tp)) for g in facts.sizes.kv_heads))


def _hidden(facts: Facts) -> Expr:
    sizes = facts.sizes
    whole = all(sizes.hidden % heads == 0 for heads in sizes.heads)
    return TRUE if sizes.head_dim_given or whole else FALSE


def _sequence_context(facts: Facts) -> Expr:
    cp, length = facts.dims.cp, facts.sizes.seq_len
    return either(equals(cp, 1), divides(2 * cp, length))


def _sequence_parallel(facts: Facts) -> Expr:
    d, length = facts.dims, facts.sizes.seq_len
    return implies(equals(d.sp, 1), divides(d.cp * d.tp, length))


def _batch(facts: Facts) -> Expr:
    d = facts.dims
    whole = equals(d.mbs * d.dp * d.m, facts.batch)
    return both(whole, at_least(d.mbs, 1), at_least(d.m, 1))


def _sequence_needs_tensor(facts: Facts) -> Expr:
    d = facts.dims
    return either(equals(d.sp, 0), at_least(d.tp, 2))


def _moe_needs_sequence(facts: Facts) -> Expr:
    d = facts.dims
    if not facts.sizes.moe:
        return TRUE
    return either(less(d.tp, 2), equals(d.sp, 1))


DIVISIBILITY = (
    Rule(
        id="heads-tp",
        sentence="H % tp = 0: attention heads divide over tp (H = {H})",
        source=f"{CONFIG}: num_attention_heads",
        body=lambda f: _all_divide(f.dims.tp, f.sizes.heads),
        where="config",
    ),
    Rule(
        id="kv-tp",
        sentence="KV % tp = 0 or tp % KV = 0: key/value heads divide over tp or are "
        "replicated over it (KV = {KV})",
        source=f"{CONFIG}: num_query_groups",
        body=_kv_heads,
        where="config",
    ),
    Rule(
        id="hidden-heads",
        sentence="without a given head width, H divides the hidden width (H = {H})",
        source=f"{LAUNCHER}: kv_channels",
        body=_hidden,
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="ffn-tp",
        sentence="the feed-forward width of dense layers divides over tp",
        source=LINEAR,
        body=lambda f: _all_divide(f.dims.tp, f.sizes.dense_ffn),
        where="build",
    ),
    Rule(
        id="moe-ffn-etp",
        sentence="the feed-forward width of an expert divides over etp",
        source=LINEAR,
        body=lambda f: _all_divide(f.dims.etp, f.sizes.expert_ffn),
        where="build",
    ),
    Rule(
        id="shared-ffn-tp",
        sentence="the feed-forward width of the shared experts divides over tp",
        source=f"{SHARED}: an MLP over tp",
        body=lambda f: _all_divide(f.dims.tp, f.sizes.shared_ffn),
        where="build",
    ),
    Rule(
        id="vocab-pad",
        sentence="the vocabulary divides over tp, unless it is padded to a multiple "
        "of 128 * tp, as the launcher does",
        source=f"{EMBEDDING}; Megatron-LM megatron/training/tokenizer: padding",
        body=lambda f: either(f.on("pad_vocab"), divides(f.dims.tp, f.sizes.vocab)),
        where="build",
    ),
    Rule(
        id="seq-cp",
        sentence="with cp > 1, S % (2 * cp) = 0: the causal sequence is cut into "
        "2 * cp chunks (S = {S})",
        source=f"{LAUNCHER}: seq_length",
        body=_sequence_context,
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="seq-sp",
        sentence="with sequence parallelism, S % (cp * tp) = 0 (S = {S})",
        source=SCATTER,
        body=_sequence_parallel,
        where="first forward",
    ),
    Rule(
        id="batch",
        sentence="B = mbs * dp * m with a whole m >= 1 (B = {B})",
        source=BATCHES,
        body=_batch,
        where="micro-batches",
    ),
    Rule(
        id="sp-tp",
        sentence="sequence parallelism needs tp > 1",
        source=f"{PARALLEL}; the launcher switches it off without a word",
        body=_sequence_needs_tensor,
        where="config",
    ),
    Rule(
        id="moe-sp",
        sentence="a mixture of experts with tp > 1 needs sequence parallelism",
        source=f"{MOE_LAYER}, MoELayer.forward",
        body=_moe_needs_sequence,
        where="first forward",
    ),
)
