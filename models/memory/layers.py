"""What one decoder layer keeps for the backward pass.

Letters: T tokens of the residual stream, h its width. Source:
transformer/transformer_layer.py of Megatron-Core 0.16.1. TransformerEngine norms
inside the following projection, except before latent attention and before a mixture
of experts, where the norm is a module of its own and can be recomputed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..architecture import DenseFFN, LatentAttention
from .attention import attention_entries
from .entries import Entry, norm_statistics
from .feed_forward import network_entries
from .latent import latent_entries, projection_inputs
from .moe import moe_entries
from .quantized import input_entries, whole_columns

if TYPE_CHECKING:
    from ..architecture import Layer
    from .entries import Context, Entries, Recompute


def _norm(
    context: Context, name: str, *, output: bool, into_product: bool = True
) -> Entries:
    """Yield input, and output with statistics unless the norm is recomputed.

    The output is the input of a matrix product, unless others read it too.
    """
    h, unit = context.hidden, context.units.shard
    shape = f"[T, {h}]"
    yield Entry(f"{name} input", context.dtype, shape, h, unit)
    if not output:
        return
    if into_product:
        matrix = whole_columns(context)
        yield from input_entries(
            context, f"{name} output", shape, h, unit, matrix, normed=True
        )
    else:
        yield Entry(f"{name} output", context.dtype, shape, h, unit)
    yield from norm_statistics(context, name, unit)


def _second_norm(context: Context, layer: Layer, recompute: Recompute) -> Entries:
    """Yield what the norm before the feed-forward network keeps."""
    separate = layer.is_moe or not context.kernels.is_te
    again = separate and "layernorm" in recompute
    inside_mlp = not separate and "mlp" in recompute
    yield from _norm(
        context,
        "feed-forward norm",
        output=not (again or inside_mlp),
        into_product=not layer.is_moe,
    )


def _outer_norms(context: Context, layer: Layer) -> Entries:
    """Yield inputs of norms behind attention and feed-forward (four-norm layers)."""
    h, unit = context.hidden, context.units.shard
    for name in ("attention output norm", "feed-forward output norm"):
        if layer.norms == 4:
            yield Entry(f"{name} input", context.dtype, f"[T, {h}]", h, unit)
            yield from norm_statistics(context, name, unit)


def layer_entries(context: Context, layer: Layer, recompute: Recompute) -> Entries:
    """Yield all that one micro-batch keeps in one layer.

    Parameters
    ----------
    context
        Model, training, kernels and units.
    layer
        The layer.
    recompute
        What is dropped and run again in the backward pass.
    """
    h, unit = context.hidden, context.units.shard
    if recompute.full:
        if context.kernels.distributed_inputs:
            unit = context.units.tokens_tp
        # The layer's input, which is the norm's: recomputing brings back no other.
        yield Entry("attention norm input", context.dtype, f"[T, {h}]", h, unit)
        return
    attention, network = layer.attention, layer.feed_forward
    latent = isinstance(attention, LatentAttention)
    separate = latent or not context.kernels.is_te
    again = separate and "layernorm" in recompute
    if isinstance(attention, LatentAttention):
        yield from _norm(context, "attention norm", output=False)
        yield from projection_inputs(context, attention, recompute)
        if not again:
            yield from norm_statistics(context, "attention norm", unit)
        yield from latent_entries(context, attention, recompute)
    else:
        yield from _norm(context, "attention norm", output=not again)
        yield from attention_entries(context, attention, recompute)
    if layer.norms > 1:
        yield from _second_norm(context, layer, recompute)
    yield from _outer_norms(context, layer)
    if not isinstance(network, DenseFFN):
        yield from moe_entries(context, network, recompute)
    elif "mlp" not in recompute:
        tokens = context.units.tokens_tp
        yield from network_entries(
            context, network.ffn, gated=network.gated, unit=tokens
        )
    if context.training.dropout:
        yield Entry("hidden dropout masks", "bool", f"[T, {h}]", h, unit, 2)
