"""What is alive only for a moment at a peak: gradients, recomputed tensors, logits.

Letters: T tokens of the residual stream, n of a sequence shard, R rows routed to a
rank, h width, X = 2 n V/tp the bf16 logits. These are structural estimates, not
golden: the tensors are those of the backward functions of Megatron-Core 0.16.1, the
multiples of X the measured ones by cross-entropy kernel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..architecture import DenseFFN
from .entries import NOTHING, Entry
from .layers import layer_entries

if TYPE_CHECKING:
    from ..architecture import Layer
    from ..expr import Expr
    from .entries import Context, Entries, Recompute
    from .units import Unit


def _gradient_entries(context: Context, layer: Layer) -> Entries:
    """Yield gradients alive in the middle of a feed-forward network's backward."""
    h, units, dtype = context.hidden, context.units, context.dtype
    yield Entry("gradient of the residual", dtype, f"[T, {h}]", h, units.shard)
    yield Entry("gathered gradient", dtype, f"[n, {h}]", h, units.gathered)
    network = layer.feed_forward
    wide = network.ffn * (2 if network.gated else 1)
    name = "gradient of the first projection"
    if isinstance(network, DenseFFN):
        yield Entry(name, dtype, f"[n, {wide}/tp]", wide, units.tokens_tp)
        return
    rows, over_etp = units.routed(network, context.kernels.capacity)
    yield Entry("gradients of routed tokens", dtype, f"[R, {h}]", h, rows, 2)
    yield Entry(name, dtype, f"[R, {wide}/etp]", wide, over_etp)


def _recomputed_entries(
    context: Context, layer: Layer, recompute: Recompute
) -> Entries:
    """Yield what a recomputed layer, or its recomputed modules, bring back."""
    kept: dict[tuple[str, Unit], int] = {}
    for entry in layer_entries(context, layer, recompute):
        kept[entry.name, entry.unit] = entry.numbers * entry.count
    for entry in layer_entries(context, layer, NOTHING):
        already = kept.get((entry.name, entry.unit), 0)
        if already < entry.numbers * entry.count:
            yield replace(entry, count=entry.count * recompute.group)
        elif recompute.group > 1:
            # Of a group the first layer's input alone was kept.
            yield replace(entry, count=entry.count * (recompute.group - 1))


def layer_transient(context: Context, layer: Layer, recompute: Recompute) -> Entries:
    """Yield what the backward pass of one layer adds to what was kept."""
    if recompute.code:
        yield from _recomputed_entries(context, layer, recompute)
    yield from _gradient_entries(context, layer)


#: Logits beside the kept ones, in 2-byte numbers per logit: the unfused loss peaks at
#: 3.1 X (41 Megatron CI layouts) of which 2 X are kept, Megatron's fused one at 5 X
#: (one recipe), TransformerEngine's at the kept X.
LOGITS = {"unfused": 1, "native-fused": 3, "te-fused": 0}


def loss_transient(context: Context, rows: Expr) -> Entries:
    """Yield what the loss and the output projection's backward add."""
    h, units, dtype = context.hidden, context.units, context.dtype
    for kernel, count in LOGITS.items():
        chosen = context.loss_is(kernel)
        if chosen.hi and count:
            unit = units.when(chosen, units.logits(rows))
            name = f"logits ({kernel} loss)"
            yield Entry(name, "bf16", "[n, V/tp]", 1, unit, count)
        elif chosen.hi:
            weights = units.when(chosen, units.head_weights(rows))
            name = "copy of the head's weights"
            yield Entry(name, "bf16", f"[V/tp, {h}]", h, weights)
    yield Entry("gathered projection input", dtype, f"[n, {h}]", h, units.gathered)
    yield Entry("gradient of the projection input", dtype, f"[n, {h}]", h, units.tokens)


def embedding_transient(context: Context, rows: Expr) -> Entries:
    """Yield the dense gradient of the word embeddings, before it is accumulated."""
    h, units, dtype = context.hidden, context.units, context.dtype
    weights = units.head_weights(rows)
    yield Entry("gradient of word embeddings", dtype, f"[V/tp, {h}]", h, weights)
    yield Entry("gradient of the embedding output", dtype, f"[n, {h}]", h, units.tokens)
