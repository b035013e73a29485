"""Weights in eight and four bits, which TransformerEngine keeps beside the parameters.

A layer quantizes its weight at the first micro-batch of a step and holds the copy for
all others, read by rows for the forward and by columns for the backward pass. Matrix
units before Blackwell need 8-bit numbers transposed for the latter; later ones read
one copy both ways if it has a single scale.

Letters: N rows and K columns of a weight on a rank. Source: quantize_weight in
pytorch/module/base.py of TransformerEngine 2.20, and the quantizers' scale shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..axis_values import PRECISIONS
from ..expr import as_expr, ceil_div, equals, exact_div, product, total
from .dummies import projection_sides

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..expr import Expr
    from ..layout import Dims
    from ..parameters import Tensor

#: Numbers that one scale stands for along a row or column, and its bytes.
_BLOCKS = {"fp8-block": (128, 4), "mxfp8": (32, 1), "nvfp4": (16, 1)}


def _up(size: Expr, multiple: int) -> Expr:
    return multiple * ceil_div(size, multiple)


def _scales(precision: str, rows: Expr, columns: Expr) -> Expr:
    """Return the number of scales of one reading, along its columns."""
    block, _ = _BLOCKS[precision]
    if precision == "fp8-block":
        return product((ceil_div(rows, block), _up(ceil_div(columns, block), 4)))
    return product((_up(rows, 128), _up(ceil_div(columns, block), 4)))


def copy_bytes(precision: str, rows: Expr, columns: Expr, *, transposed: bool) -> Expr:
    """Return the bytes of one weight's copies.

    Parameters
    ----------
    precision
        A name of ``axis_values.PRECISIONS``.
    rows, columns
        Of the weight on a rank.
    transposed
        Whether the device needs 8-bit numbers transposed for the backward pass.
    """
    numbers = product((rows, columns))
    if precision in ("fp8-delayed", "fp8-tensor"):
        return (2 if transposed else 1) * numbers + 4
    both = _scales(precision, rows, columns)
    if precision == "mxfp8":
        both = both + product((_up(ceil_div(rows, 32), 4), _up(columns, 128)))
    else:
        both = both + _scales(precision, columns, rows)
    each = _BLOCKS[precision][1]
    if precision == "nvfp4":
        return numbers + each * both + 8
    return 2 * numbers + each * both


def weight_copies(
    tensors: Iterable[Tensor], dims: Dims, *, transposed: bool, skip: str = ""
) -> Expr:
    """Return the bytes of the copies of some parameters on a rank.

    Parameters
    ----------
    tensors
        Parameters of layers, those that are no projection included.
    dims
        The axes, of which tp, ep, etp and the precision are read.
    transposed
        As for ``copy_bytes``.
    skip
        A precision in which these are not quantized.
    """
    found = list(tensors)
    terms = []
    for code, precision in enumerate(PRECISIONS):
        chosen = equals(dims.precision, code)
        if precision in ("bf16", "fp16", skip) or chosen.hi == 0:
            continue
        sizes = (_bytes(precision, tensor, dims, transposed) for tensor in found)
        terms.append(product((chosen, total(sizes))))
    return total(terms)


def _bytes(precision: str, tensor: Tensor, dims: Dims, transposed: bool) -> Expr:
    sides = projection_sides(tensor)
    if sides is None:
        return as_expr(0)
    rows, columns = (exact_div(side.numbers, side.divisor(dims)) for side in sides)
    size = copy_bytes(precision, rows, columns, transposed=transposed)
    if tensor.shard == "expert":
        return product((exact_div(tensor.shape[0], dims.ep), size))
    return size
