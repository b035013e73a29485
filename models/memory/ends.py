"""What embedding, head, loss and multi-token prediction keep.

Letters: T tokens of the residual stream, n of a sequence shard, h width, V/tp a
rank's rows of the padded vocabulary. Sources: models/common/embeddings, tensor_parallel
(layers.py, cross_entropy.py), fusions/fused_cross_entropy.py and
transformer/multi_token_prediction.py of Megatron-Core 0.16.1; cross_entropy.py of
TransformerEngine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..architecture import LatentAttention
from .entries import NOTHING, Entry, norm_statistics
from .layers import layer_entries
from .quantized import input_entries, whole_columns

if TYPE_CHECKING:
    from ..expr import Expr
    from .entries import Context, Entries, Recompute


def embedding_entries(context: Context) -> Entries:
    """Yield what one embedding of a micro-batch's tokens keeps."""
    h, units = context.hidden, context.units
    yield Entry("tokens local to the vocabulary shard", "int64", "[n]", 1, units.split)
    yield Entry("mask of foreign tokens", "bool", "[n]", 1, units.split)
    if context.architecture.embedding_norm:
        unit = units.tokens
        yield Entry("embedding norm input", context.dtype, f"[n, {h}]", h, unit)
        yield from norm_statistics(context, "embedding norm", unit)
    if context.training.dropout:
        yield Entry("embedding dropout mask", "bool", f"[T, {h}]", h, units.shard)


def final_norm_entries(context: Context) -> Entries:
    """Yield what the norm before the head keeps, apart from its output."""
    if context.architecture.final_norm:
        h, unit = context.hidden, context.units.shard
        yield Entry("final norm input", context.dtype, f"[T, {h}]", h, unit)
        yield from norm_statistics(context, "final norm", unit)


def loss_entries(context: Context, rows: Expr) -> Entries:
    """Yield what one output projection with its cross-entropy keeps."""
    h, units = context.hidden, context.units
    logits, fused = units.logits(rows), context.loss_is("te-fused")
    yield Entry("output projection input", context.dtype, f"[T, {h}]", h, units.shard)
    if fused.hi:
        kept = units.when(fused, logits)
        yield Entry("copy of the logits", context.dtype, "[n, V/tp]", 1, kept)
        kept = units.when(fused, units.tokens)
        yield Entry("statistics of the logits", "fp32", "[n, 2]", 2, kept)
        kept = units.when(fused, units.transposed)
        yield Entry("targets", "int64", "[n]", 1, kept)
    if fused.lo == 0:
        kept = units.when(1 - fused, logits)
        yield Entry("softmax of the logits", "fp32", "[n, V/tp]", 1, kept)
        kept = units.when(1 - fused, units.tokens)
        name = "targets local to the vocabulary shard"
        yield Entry(name, "int64", "[n]", 1, kept)
        yield Entry("mask of foreign targets", "bool", "[n]", 1, kept)


def mtp_entries(context: Context, recompute: Recompute) -> Entries:
    """Yield what one multi-token-prediction layer keeps, its output projection apart.

    The output projections of all layers keep one tensor with the states of all, so
    that the input of the norm of the state is kept for itself. The layer's input is a
    view of the gathered projection under sequence parallelism.
    """
    if context.precision == "nvfp4":
        # Megatron runs predicted tokens in eight bits, but not in four.
        context = replace(context, precision="bf16")
    if recompute.full and recompute.partly:
        recompute = NOTHING  # blocks of a chunk's first layers leave these alone
    h, units, dtype = context.hidden, context.units, context.dtype
    layer = context.architecture.layers[-1]
    yield from embedding_entries(context)
    yield Entry("tokens moved by one", "int64", "[n]", 1, units.whole)
    if context.architecture.position == "learned":
        yield Entry("positions moved by one", "int64", "[n]", 1, units.tokens)
    yield Entry("token norm input", dtype, f"[T, {h}]", h, units.shard)
    yield Entry("state norm input", dtype, f"[T, {h}]", h, units.shard)
    yield Entry("loss mask moved by one", "fp32", "[n]", 1, units.tokens)
    yield Entry("losses before the mask", "fp32", "[n]", 1, units.tokens)
    yield Entry("number of tokens in the mask", "fp32", "[]", 1, units.once)
    fused = context.loss_is("te-fused")
    if fused.hi:
        kept = units.when(fused, units.turned)
        yield Entry("targets moved by one", "int64", "[n]", 1, kept)
    if recompute.full:
        return
    yield from norm_statistics(context, "token norm", units.shard)
    yield from norm_statistics(context, "state norm", units.shard)
    wide = 2 * h
    shape, matrix = f"[T, {wide}]", whole_columns(context)
    yield from input_entries(
        context, "token and state", shape, wide, units.shard, matrix
    )
    yield Entry(
        "rest of the gathered input", dtype, f"[n - T, {h}]", h, units.unsharded
    )
    yield from layer_entries(context, layer, recompute)
    yield from final_norm_entries(context)


def model_entries(context: Context, recompute: Recompute) -> Entries:
    """Yield what is kept once for all layers and micro-batches of a rank."""
    units, kernels = context.units, context.kernels
    dense = [
        kind.attention
        for kind in context.architecture.kinds
        if not isinstance(kind.attention, LatentAttention)
    ]
    # Otherwise the table is alive as well, but saved by nothing.
    if (recompute.full or kernels.rope_fusion) and context.rope and dense:
        d = dense[0].head_dim
        yield Entry("rotary table", "fp32", f"[s, 1, 1, {d}]", d, units.positions)
    if recompute.partly and kernels.is_te and "core_attn" not in recompute:
        yield Entry("sequence starts", "int32", "[b + 1]", 1, units.boundaries)
        sharded = 1 - context.exchanges("a2a")
        if sharded.hi:
            name = "sequence starts of a shard"
            unit = units.when(sharded, units.exchanged_boundaries)
            yield Entry(name, "int32", "[b + 1]", 1, unit)
