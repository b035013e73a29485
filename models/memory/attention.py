"""What attention keeps for the backward pass.

Letters: n tokens of a sequence shard, a heads, g key/value heads, d head dim, all
before division by tp. Sources: the forward functions of Megatron-Core 0.16.1
(transformer/attention.py, dot_product_attention.py) and of TransformerEngine 2.20
(DotProductAttention, which copies queries, keys and values that are views of one
projection in any order but its own).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .entries import Entry, norm_statistics
from .quantized import divided_columns, input_entries

if TYPE_CHECKING:
    from ..architecture import Attention
    from .entries import Context, Entries, Recompute


def rotary_entries(context: Context, width: int) -> Entries:
    """Yield cosine and sine, once for queries and once for keys, if not fused."""
    if context.rope and not context.kernels.rope_fusion:
        unit = context.units.positions
        shape = f"[s, 1, 1, {width}]"
        yield Entry("rotary cosine and sine", context.dtype, shape, width, unit, 4)


def _calls(context: Context) -> Entries:
    """Yield what each call of fused attention keeps besides, by way of exchange."""
    units = context.units
    calls = {
        ("p2p", "hierarchical"): units.steps,
        ("a2a",): units.once,
        ("all-gather",): units.halves,
    }
    for styles, unit in calls.items():
        chosen = units.when(context.exchanges(*styles), unit)
        yield Entry("attention random state", "int64", "[2]", 2, chosen)
    gathered = context.exchanges("all-gather")
    name = "sequence starts of gathered keys"
    unit = units.when(gathered, units.exchanged_boundaries)
    yield Entry(name, "int32", "[b + 1]", 1, unit)


def score_entries(context: Context, heads: int) -> Entries:
    """Yield statistics and random state of fused attention, or the scores."""
    unit = context.units.tokens_tp
    if not context.kernels.unfused_attention:
        yield Entry("softmax statistics", "fp32", "[b, a/tp, n]", heads, unit)
        yield from _calls(context)
        return
    seq = context.training.seq_len
    numbers = heads * seq
    shape = "[b, a/tp, s, s]"
    half, dropout = context.dtype, context.training.dropout
    if context.kernels.softmax_fp32 and half != "fp32":
        yield Entry("softmax in fp32", "fp32", shape, numbers, unit)
        yield Entry("softmax", half, shape, numbers, unit)
    else:
        yield Entry("softmax", half, shape, numbers, unit)
        if dropout:
            yield Entry("softmax after dropout", half, shape, numbers, unit)
    if dropout:
        yield Entry("attention dropout mask", "bool", shape, numbers, unit)


def output_entries(
    context: Context, heads: int, width: int, *, checkpointed: bool
) -> Entries:
    """Yield the output projection's input, and attention's own if exchanged after.

    Exchanging heads for tokens (all-to-all context parallelism) makes a second
    tensor of the output, while attention keeps the first unless it is checkpointed.
    """
    dtype, units = context.dtype, context.units
    shape, numbers = f"[n, a/tp * {width}]", heads * width
    if context.precision != "fp8-delayed" or not checkpointed:
        yield Entry("attention output", dtype, shape, numbers, units.tokens_tp)
    if context.precision == "fp8-delayed":
        # Other formats let the projection keep what attention keeps anyway.
        matrix, name = divided_columns(context), "input of the output projection"
        unit = units.tokens_tp
        yield from input_entries(context, name, shape, numbers, unit, matrix)
    exchanged = context.exchanges("a2a", "hierarchical")
    if not checkpointed and exchanged.hi:
        name = "attention output before its exchange"
        unit = units.when(exchanged, units.exchanged_tp)
        yield Entry(name, dtype, shape, numbers, unit)


def _query_key_value(
    context: Context, attention: Attention, *, checkpointed: bool
) -> Entries:
    """Yield queries, keys and values as the attention kernel's inputs.

    Where nothing comes between projection and kernel, all three are views of the
    projection's output, kept once. Rotation and norm make new queries and keys;
    grouped queries are copied when they are laid out by head.
    """
    a, g, d = attention.heads, attention.kv_heads, attention.head_dim
    dtype, units = context.dtype, context.units
    packed = Entry(
        "packed queries, keys and values",
        dtype,
        f"[n, ({a} + 2*{g})/tp * {d}]",
        (a + 2 * g) * d,
        units.packed(g),
    )
    changed = context.rope or attention.qk_norm != "none"
    if not changed and a == g:
        yield packed
        return
    copies = context.kernels.is_te and not checkpointed
    shape = f"[n, a/tp, {d}]"
    if changed:
        yield Entry("queries", dtype, shape, a * d, units.tokens_tp)
    else:
        # Apart, as recomputing brings back those alone that it does not keep.
        yield Entry("queries", dtype, shape, a * d, units.copied_queries(g))
    if copies and not changed:
        yield Entry("queries", dtype, shape, a * d, units.viewed_queries(g))
    if changed or copies:
        yield Entry("keys", dtype, f"[n, g/tp, {d}]", d, units.keys(g))
    if copies:
        yield Entry("values", dtype, f"[n, g/tp, {d}]", d, units.keys(g))
    else:
        yield packed


def _unfused_inputs(context: Context, attention: Attention) -> Entries:
    """Yield queries, keys and values as the two batched products keep them.

    Keys and values are repeated for the queries of their group, which frees the
    projection's output; a rank with one query per key keeps that output instead.
    """
    a, g, d = attention.heads, attention.kv_heads, attention.head_dim
    dtype, units = context.dtype, context.units
    repeated, single = units.repeated(a, g)
    shape = f"[n, a/tp, {d}]"
    changed = context.rope or attention.qk_norm != "none"
    yield Entry("queries", dtype, shape, a * d, repeated)
    yield Entry("repeated keys", dtype, shape, a * d, repeated)
    yield Entry("repeated values", dtype, shape, a * d, repeated)
    if changed:
        yield Entry("queries", dtype, shape, a * d, single)
        yield Entry("keys", dtype, f"[n, g/tp, {d}]", a * d, single)
    if attention.qk_norm == "none":
        wide = (a + 2 * g) * d
        yield Entry("packed queries, keys and values", dtype, "[n, ...]", wide, single)


def _normed_inputs(
    context: Context, attention: Attention, *, checkpointed: bool
) -> Entries:
    """Yield what norms of queries and keys keep: their inputs and statistics."""
    a, g, d = attention.heads, attention.kv_heads, attention.head_dim
    dtype, units = context.dtype, context.units
    keys = units.keys(g)
    if context.kernels.is_te:
        yield Entry("query norm input", dtype, "[n a/tp, d]", a * d, units.tokens_tp)
        yield Entry("key norm input", dtype, "[n g/tp, d]", d, keys)
    elif a != g:
        unit = units.copied_queries(g)
        yield Entry("query norm input", dtype, "[n, a/tp, d]", a * d, unit)
    if context.kernels.unfused_attention and not checkpointed:
        # The key norm's input is a view of the projection, which stays.
        wide = (a + 2 * g) * d
        shape = "[n, (a + 2 g)/tp * d]"
        name = "packed queries, keys and values"
        yield Entry(name, dtype, shape, wide, units.packed(g))
    if attention.qk_norm == "head":
        yield from norm_statistics(context, "query norm", units.tokens_tp, a)
        yield from norm_statistics(context, "key norm", keys)
    else:
        yield from norm_statistics(context, "query norm", units.tokens)
        yield from norm_statistics(context, "key norm", units.tokens)


def attention_entries(
    context: Context, attention: Attention, recompute: Recompute
) -> Entries:
    """Yield what multi-head or grouped-query attention keeps, norms of x apart."""
    checkpointed = "core_attn" in recompute
    a, d = attention.heads, attention.head_dim
    if attention.qk_norm != "none":
        yield from _normed_inputs(context, attention, checkpointed=checkpointed)
    yield from rotary_entries(context, d)
    if context.kernels.unfused_attention and not checkpointed:
        yield from _unfused_inputs(context, attention)
    else:
        yield from _query_key_value(context, attention, checkpointed=checkpointed)
    if checkpointed:
        once = context.units.once
        yield Entry("mask type of recomputed attention", "int32", "[1]", 1, once)
    else:
        yield from score_entries(context, a)
    yield from output_entries(context, a, d, checkpointed=checkpointed)
