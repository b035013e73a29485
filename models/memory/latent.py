"""What multi-head latent attention (MLA) keeps for the backward pass.

Letters: T tokens of the residual stream, n of a sequence shard, a heads.
Source: transformer/multi_latent_attention.py of Megatron-Core 0.16.1. Compressed
queries and keys are projected up by a layer that norms its input first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .attention import output_entries, rotary_entries, score_entries
from .entries import Entry, norm_statistics
from .quantized import input_entries, whole_columns

if TYPE_CHECKING:
    from ..architecture import LatentAttention
    from .entries import Context, Entries, Recompute


def _up_projection(context: Context, name: str, rank: int, beside: int) -> Entries:
    """Yield the input of a projection up, and with a norm its output besides.

    The input is a view of a tensor ``beside`` numbers wider, which TransformerEngine
    copies.
    """
    unit, dtype = context.units.shard, context.dtype
    shape = f"[T, {rank}]"
    wide = rank if context.kernels.is_te else rank + beside
    matrix = whole_columns(context)
    if context.kernels.latent_norm:
        yield Entry(f"compressed {name}", dtype, f"[T, {wide}]", wide, unit)
        normed = f"normed compressed {name}"
        yield from input_entries(
            context, normed, shape, rank, unit, matrix, normed=True
        )
        yield from norm_statistics(context, f"compressed {name} norm", unit)
    else:
        plain = f"compressed {name}"
        shape = f"[T, {wide}]"
        yield from input_entries(context, plain, shape, wide, unit, matrix)


def projection_inputs(
    context: Context, attention: LatentAttention, recompute: Recompute
) -> Entries:
    """Yield what projections down keep of the layer's normed input.

    With 16 bits that is the norm's output; narrower formats make a copy for each of
    the two, unless the norm is recomputed: then both take the output itself, but for
    queries that have no projection down. Where those are recomputed with what is
    projected up, the output is kept for them.
    """
    h, unit, shape = context.hidden, context.units.shard, f"[T, {context.hidden}]"
    name, again = "attention norm output", "layernorm" in recompute
    direct = attention.q_rank is None
    original = direct and "mla_up_proj" in recompute
    if not again and (original or not context.narrow):
        yield Entry(name, context.dtype, shape, h, unit)
    if context.narrow:
        copies = (direct if again else 2) - original
        matrix = whole_columns(context)
        for _ in range(copies):
            yield from input_entries(context, name, shape, h, unit, matrix)


def _recomputed_inputs(context: Context, attention: LatentAttention) -> Entries:
    """Yield what recomputing both projections up and the rotation starts from.

    Compressed keys and their rotary part are views of one tensor; sequence
    parallelism gathers the rotary part into its own.
    """
    units, dtype = context.units, context.dtype
    if attention.q_rank is not None:
        rank = attention.q_rank
        yield Entry("compressed queries", dtype, f"[T, {rank}]", rank, units.shard)
    wide = attention.kv_rank + attention.rope_dim
    yield Entry("compressed keys and values", dtype, f"[T, {wide}]", wide, units.shard)
    rope = attention.rope_dim
    shape = f"[n, {rope}]"
    yield Entry("gathered rotary keys", dtype, shape, rope, units.gathered)
    if context.rope and not context.kernels.rope_fusion:
        yield Entry("rotary table", "fp32", f"[s, 1, 1, {rope}]", rope, units.positions)


def _sent_round(context: Context, attention: LatentAttention) -> Entries:
    """Yield what a ring of keys and values keeps though both are recomputed.

    The ring joins them in a tensor of its own, which attention keeps.
    """
    rings = context.exchanges("p2p", "hierarchical")
    if rings.hi:
        wide = attention.nope_dim + attention.rope_dim + attention.v_dim
        numbers = attention.heads * wide
        unit = context.units.when(rings, context.units.exchanged_tp)
        name, shape = "keys and values sent round", f"[n, a/tp, {wide}]"
        yield Entry(name, context.dtype, shape, numbers, unit)


def latent_entries(
    context: Context, attention: LatentAttention, recompute: Recompute
) -> Entries:
    """Yield what latent attention keeps, the norm of the layer's input apart."""
    units, dtype, a = context.units, context.dtype, attention.heads
    unit = units.tokens_tp
    if "mla_up_proj" in recompute:
        yield from _recomputed_inputs(context, attention)
        if "core_attn" not in recompute:
            yield from _sent_round(context, attention)
    else:
        if attention.q_rank is not None:
            yield from _up_projection(context, "queries", attention.q_rank, 0)
        rank, beside = attention.kv_rank, attention.rope_dim
        yield from _up_projection(context, "keys and values", rank, beside)
        yield from rotary_entries(context, attention.rope_dim)
        wide = attention.nope_dim + attention.rope_dim
        yield Entry("queries", dtype, f"[n, a/tp, {wide}]", a * wide, unit)
        yield Entry("keys", dtype, f"[n, a/tp, {wide}]", a * wide, unit)
        v = attention.v_dim
        yield Entry("values", dtype, f"[n, a/tp, {v}]", a * v, unit)
    checkpointed = "core_attn" in recompute
    if checkpointed:
        name = "mask type of recomputed attention"
        yield Entry(name, "int32", "[1]", 1, units.once)
    else:
        yield from score_entries(context, a)
    yield from output_entries(context, a, attention.v_dim, checkpointed=checkpointed)
