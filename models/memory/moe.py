"""What a mixture of experts keeps for the backward pass.

Letters: T tokens of the residual stream on a rank, E experts, k experts of a token,
R rows that a rank's experts receive (k T etp if routing is balanced), F width of an
expert. Source: transformer/moe/ of Megatron-Core 0.16.1: router.py, moe_utils.py,
token_dispatcher.py (all-to-all), experts.py, shared_experts.py; with fused
permutation, permutation.py of TransformerEngine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..expr import as_expr, product
from .entries import Entry
from .feed_forward import network_entries
from .quantized import ALIGNMENT, Matrix, input_entries
from .units import Unit

if TYPE_CHECKING:
    from ..architecture import MoE
    from .entries import Context, DType, Entries, Recompute


def _router_dtype(context: Context) -> DType:
    return "fp32" if context.kernels.router_fp32 else context.dtype


def _scores(context: Context, moe: MoE) -> Entries:
    """Yield what the choice of experts keeps."""
    unit, dtype = context.units.shard, _router_dtype(context)
    e, k = moe.experts, moe.topk
    yield Entry("chosen experts", "int64", f"[T, {k}]", k, unit)
    if moe.scoring == "softmax" and context.kernels.pre_softmax:
        yield Entry("router softmax", "fp32", f"[T, {e}]", e, unit)
    elif moe.scoring == "softmax":
        yield Entry("router softmax", "fp32", f"[T, {k}]", k, unit)
    else:
        yield Entry("router sigmoid", "fp32", f"[T, {e}]", e, unit)
        if moe.score_bias and dtype != "fp32":
            yield Entry("router sigmoid cast down", dtype, f"[T, {e}]", e, unit)
        if k > 1:
            yield Entry("scores of chosen experts", dtype, f"[T, {k}]", k, unit)
            yield Entry("sum of chosen scores", dtype, "[T, 1]", 1, unit)


def _losses(context: Context, moe: MoE) -> Entries:
    """Yield what auxiliary losses of the router keep."""
    units, kernels, e = context.units, context.kernels, moe.experts
    dtype = _router_dtype(context)
    if kernels.aux_loss != "none":
        per_sequence = kernels.aux_loss == "seq-aux"
        counts = units.batch if per_sequence else units.once
        softmax = moe.scoring == "softmax"
        scores: DType = "fp32" if softmax else dtype
        yield Entry("scores of the auxiliary loss", scores, f"[T, {e}]", e, units.shard)
        if not softmax:
            yield Entry("sum of the auxiliary scores", dtype, "[T, 1]", 1, units.shard)
        yield Entry("tokens per expert", "int64", f"[{e}]", e, counts)
        yield Entry("auxiliary loss scale", scores, "[]", 1, units.once)
    if kernels.z_loss:
        yield Entry("router logits", dtype, f"[T, {e}]", e, units.shard)
        yield Entry("log-sum of router logits", dtype, "[T]", 1, units.shard)
        yield Entry("z-loss", dtype, "[]", 1, units.once)


def _permutation(context: Context, moe: MoE, rows: Unit, sent: Unit) -> Entries:
    """Yield what sending tokens to experts and back keeps."""
    units, e, k = context.units, moe.experts, moe.topk
    unit = units.shard
    if context.kernels.capacity is not None:
        yield Entry("map of tokens within capacity", "bool", f"[T, {e}]", e, unit)
    if context.kernels.permute_fusion:
        wide = 2 * e + 1
        yield Entry("row map of the permutation", "int32", f"[T, {wide}]", wide, unit)
        if context.kernels.capacity is None:
            name, several = "row maps of the sorting by expert", units.several(rows, e)
            yield Entry(name, "int32", "[R]", 1, several, 2)
        return
    if context.kernels.capacity is not None:
        yield Entry("sorted token indices", "int64", "[R/etp]", 1, sent)
        yield Entry("indices of routing weights", "int64", "[R/etp]", 1, sent)
        return
    dtype = _router_dtype(context)
    gathered, sorted_by = context.dispatches("allgather"), "sorted token indices"
    if gathered.hi:
        # Of all ranks' tokens, for a rank's own experts.
        every, shape = units.when(gathered, units.shard_etp), f"[{e}/ep, T etp ep]"
        yield Entry("routing weights", dtype, shape, e, every)
        yield Entry("routing map", "bool", shape, e, every)
        yield Entry(sorted_by, "int64", "[R]", 1, units.when(gathered, rows))
    if gathered.lo == 0:
        own = units.when(1 - gathered, unit)
        yield Entry("routing weights", dtype, f"[{e}, T]", e, own)
        yield Entry("routing map", "bool", f"[{e}, T]", e, own)
        yield Entry(sorted_by, "int64", f"[T {k}]", k, own)


def _experts(context: Context, moe: MoE, recompute: Recompute) -> Entries:
    """Yield what the experts' networks keep."""
    units, dtype, h = context.units, context.dtype, context.hidden
    rows, parts = units.routed(moe, context.kernels.capacity)
    yield from _permutation(context, moe, rows, parts)
    if context.narrow:
        yield from _narrow_experts(context, moe, recompute)
        return
    yield Entry("routed tokens", dtype, f"[R, {h}]", h, rows)
    yield Entry("routed weights", _router_dtype(context), "[R, 1]", 1, rows)
    yield from _first_projection(context, moe, parts)
    if "moe_act" not in recompute:
        yield from _activation(context, moe, parts)
        shape = f"[R, {moe.ffn}/etp]"
        yield Entry("experts' activation", dtype, shape, moe.ffn, parts)


def _first_projection(context: Context, moe: MoE, parts: Unit) -> Entries:
    wide = moe.ffn * (2 if moe.gated else 1)
    name, shape = "experts' first projection", f"[R, {wide}/etp]"
    yield Entry(name, context.dtype, shape, wide, parts)


def _activation(context: Context, moe: MoE, parts: Unit) -> Entries:
    """Yield what an activation that is not fused keeps."""
    dtype, shape = context.dtype, f"[R, {moe.ffn}/etp]"
    if not context.kernels.activation_fusion:
        if moe.gated:
            yield Entry("experts' activated gate", dtype, shape, moe.ffn, parts)
            yield Entry("experts' linear half", dtype, shape, moe.ffn, parts)
        yield Entry("experts' unweighted activation", dtype, shape, moe.ffn, parts)


def _narrow_experts(context: Context, moe: MoE, recompute: Recompute) -> Entries:
    """Yield what experts keep whose products take eight or four bits.

    Each expert's rows are padded and quantized apart.
    """
    units, h, etp = context.units, context.hidden, context.units.dims.etp
    multiple, one = ALIGNMENT[context.precision], as_expr(1)
    again = "moe_act" in recompute
    for copies, rows in units.expert_rows(moe, context.kernels.capacity, multiple):
        if copies.hi == 0:
            continue
        each, every = Unit(rows, one), product((copies, rows))
        whole, parts = Unit(every, one), Unit(every, etp)
        matrix = Matrix(each, one, copies)
        name = "routed tokens"
        yield from input_entries(context, name, f"[R, {h}]", h, whole, matrix)
        yield Entry("routed weights", _router_dtype(context), "[R, 1]", 1, whole)
        yield from _first_projection(context, moe, parts)
        if again:
            continue
        yield from _activation(context, moe, parts)
        name, shape = "experts' activation", f"[R, {moe.ffn}/etp]"
        matrix = Matrix(each, etp, copies)
        yield from input_entries(context, name, shape, moe.ffn, parts, matrix)


def _shared_experts(context: Context, moe: MoE, recompute: Recompute) -> Entries:
    """Yield what shared experts keep; their input is the router's."""
    if not moe.shared_ffn or "shared_experts" in recompute:
        return
    yield from network_entries(
        context,
        moe.shared_ffn,
        gated=moe.gated,
        unit=context.units.tokens_tp,
        prefix="shared experts' ",
    )
    if moe.shared_gate:
        unit, h = context.units.shard, context.hidden
        yield Entry("shared experts' output", context.dtype, f"[T, {h}]", h, unit)
        yield Entry("shared experts' gate", context.dtype, "[T, 1]", 1, unit)


def moe_entries(context: Context, moe: MoE, recompute: Recompute) -> Entries:
    """Yield what a mixture of experts keeps, its normed input apart."""
    if "moe" in recompute:
        return
    yield from _scores(context, moe)
    yield from _losses(context, moe)
    yield from _experts(context, moe, recompute)
    yield from _shared_experts(context, moe, recompute)
