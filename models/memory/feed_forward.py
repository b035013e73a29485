"""What a dense feed-forward network keeps for the backward pass.

Letters: n tokens of a sequence shard, f width. Source: transformer/mlp.py of
Megatron-Core 0.16.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .entries import Entry
from .quantized import divided_columns, input_entries

if TYPE_CHECKING:
    from .entries import Context, Entries
    from .units import Unit


def network_entries(
    context: Context, ffn: int, *, gated: bool, unit: Unit, prefix: str = ""
) -> Entries:
    """Yield the inputs of activation and second projection.

    Parameters
    ----------
    context
        Model, training, kernels and units.
    ffn
        Width f of the network, before division.
    gated
        Whether the first projection has two halves.
    unit
        Tokens over the parallel size that divides the width.
    prefix
        Put before the names.
    """
    dtype = context.dtype
    wide = ffn * (2 if gated else 1)
    yield Entry(f"{prefix}first projection", dtype, f"[n, {wide}/tp]", wide, unit)
    if gated and not context.kernels.activation_fusion:
        # The other half is copied when the (by default zero) offset is added.
        yield Entry(f"{prefix}activated gate", dtype, f"[n, {ffn}/tp]", ffn, unit)
        yield Entry(f"{prefix}linear half", dtype, f"[n, {ffn}/tp]", ffn, unit)
    name, shape = f"{prefix}activation", f"[n, {ffn}/tp]"
    matrix = divided_columns(context)
    yield from input_entries(context, name, shape, ffn, unit, matrix)
