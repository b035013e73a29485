"""Inputs of matrix products in eight and four bits, and copies of weights in them.

A product's input is kept for its weight gradient, quantized along its rows where the
format scales blocks: one scale for 128 rows of a column (``fp8-block``, 32 bits), for
32 rows (``mxfp8``, 8 bits) or 16 rows (``nvfp4``, 8 bits), padded to what the matrix
unit reads at once. ``fp8-delayed`` and ``fp8-tensor`` have one scale for a tensor.

Letters: M rows (tokens), K columns (channels on a rank). Source: each quantizer's
``inner_tensor_specs`` and ``get_scale_shape`` in pytorch/tensor/ of TransformerEngine
2.20, and its csrc/quantizer.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..expr import Expr, as_expr, ceil_div, product
from .entries import Entry
from .units import Unit

if TYPE_CHECKING:
    from .entries import Context, DType, Entries


class Blocks(NamedTuple):
    """How scales of a format are laid out for an input that is read by columns.

    ``rows`` and ``columns`` are multiples that the scales are padded to, in numbers
    of the tensor and in scales; a scale stands for ``block`` rows.
    """

    dtype: DType
    block: int
    rows: int
    columns: int


#: Scales of an input by columns: M / block, padded, times K, padded.
BLOCKS = {
    "fp8-block": Blocks("fp32", 128, 1, 4),
    "mxfp8": Blocks("uint8", 32, 4, 128),
    "nvfp4": Blocks("uint8", 16, 4, 128),
}
#: Rows that each expert's are padded to a multiple of (Fp8Padding).
ALIGNMENT = {
    "fp8-delayed": 16,
    "fp8-tensor": 16,
    "fp8-block": 16,
    "mxfp8": 32,
    "nvfp4": 128,
}


class Matrix(NamedTuple):
    """The rows of a product's input, what divides its columns, and how many exist."""

    rows: Unit
    divisor: Expr
    copies: Expr = as_expr(1)


def whole_columns(context: Context) -> Matrix:
    """Return a rank's tokens of the residual stream, whose channels are whole."""
    return Matrix(context.units.shard, as_expr(1))


def divided_columns(context: Context) -> Matrix:
    """Return a sequence shard's tokens, whose channels tp divides."""
    return Matrix(context.units.tokens, context.units.dims.tp)


def _padded(size: Expr | int, divisor: Expr, multiple: int) -> Expr:
    return multiple * ceil_div(size, product((multiple, divisor)))


def scales(blocks: Blocks, columns: int, matrix: Matrix) -> Unit:
    """Return the number of scales of inputs that are read by columns."""
    rows, wide = matrix.rows, blocks.block * blocks.rows
    along = ceil_div(rows.numerator, product((rows.divisor, wide))) * blocks.rows
    across = _padded(columns, matrix.divisor, blocks.columns)
    return Unit(product((matrix.copies, along, across)), as_expr(1))


def input_entries(
    context: Context,
    name: str,
    shape: str,
    columns: int,
    unit: Unit,
    matrix: Matrix,
    *,
    normed: bool = False,
) -> Entries:
    """Yield inputs of matrix products as they are kept for the weight gradient.

    Parameters
    ----------
    context
        Model, training, kernels, units and precision.
    name, shape
        Of the tensor.
    columns
        Channels before division.
    unit
        Rows of all copies over what divides the channels.
    matrix
        The same apart.
    normed
        Whether a layer that norms its input quantizes the norm's output. Under
        sequence parallelism it gathers ``nvfp4`` by rows, and keeps both readings.
    """
    precision = context.precision
    if not context.narrow:
        yield Entry(name, context.dtype, shape, columns, unit)
        return
    wide = columns // 2 if precision == "nvfp4" else columns
    yield Entry(name, "uint8", shape, wide, unit)
    if precision in BLOCKS:
        blocks = BLOCKS[precision]
        number = scales(blocks, columns, matrix)
        yield Entry(f"scales of {name}", blocks.dtype, "[M/block, K]", 1, number)
    if precision not in ("fp8-block", "mxfp8"):
        what = "largest number" if precision == "nvfp4" else "scale"
        copies = Unit(matrix.copies, as_expr(1))
        yield Entry(f"{what} of {name}", "fp32", "[1]", 1, copies)
    if normed and precision == "nvfp4":
        yield from _by_rows(context, name, columns, unit)


def _by_rows(context: Context, name: str, columns: int, unit: Unit) -> Entries:
    """Yield the reading by rows of a normed input in four bits, if it is gathered."""
    gathered = context.units.dims.sp
    split = Unit(product((unit.numerator, gathered)), unit.divisor)
    yield Entry(f"{name} by rows", "uint8", f"[T, {columns}/2]", columns // 2, split)
    along = 128 * ceil_div(unit.numerator, product((unit.divisor, 128)))
    number = Unit(product((along, gathered)), as_expr(1))
    across = 4 * -(-columns // 64)
    shape = f"[T, {across}]"
    yield Entry(f"scales of {name} by rows", "uint8", shape, across, number)
