"""Dummy weight gradients, which TransformerEngine caches for the life of a process.

Where the matrix product accumulates weight gradients into the main ones, autograd
still wants a gradient: a tensor that is never filled, one for every shape (and
format) of a weight on the rank. Weights of different layers share it, and so do
weights that differ in the whole model but have the same shape on a rank.

Source: get_dummy_wgrad in pytorch/module/base.py of TransformerEngine 2.20.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from ..expr import Axis, as_expr, both, either, equals, exact_div, total, where

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..expr import Expr
    from ..layout import Dims
    from ..parameters import Tensor


class _Side(NamedTuple):
    """Rows or columns of a weight, and the axis that divides them, if any."""

    numbers: int
    axis: str

    def divisor(self, dims: Dims) -> Expr:
        found: Expr = getattr(dims, self.axis) if self.axis else as_expr(1)
        return found


_Shape = tuple[_Side, _Side]


def projection_sides(tensor: Tensor) -> _Shape | None:
    """Return a projection's shape on a rank, None for other tensors.

    Router and gate are not TransformerEngine's.
    """
    is_matrix = tensor.name.endswith(".weight") and len(tensor.shape) > 1
    if not is_matrix or tensor.name.startswith("router"):
        return None
    axis = {"expert": "etp", "replicated": ""}.get(tensor.shard, "tp")
    by_rows = tensor.by_rows
    rows, columns = tensor.shape[-2:]
    return _Side(rows, axis if by_rows else ""), _Side(columns, "" if by_rows else axis)


def _domain(node: Expr) -> tuple[int, ...]:
    return node.data.values if isinstance(node.data, Axis) else (node.lo,)


def _can_be_equal(left: _Shape, right: _Shape, dims: Dims) -> bool:
    """Whether two shapes are equal for any values of tp and etp."""
    for tp, etp in product(_domain(dims.tp), _domain(dims.etp)):
        by = {"tp": tp, "etp": etp, "": 1}
        sides = zip(left, right, strict=True)
        if all(a.numbers * by[b.axis] == b.numbers * by[a.axis] for a, b in sides):
            return True
    return False


def _equal(left: _Shape, right: _Shape, dims: Dims) -> Expr:
    return both(
        *(
            equals(a.numbers * b.divisor(dims), b.numbers * a.divisor(dims))
            for a, b in zip(left, right, strict=True)
        )
    )


def _size(shape: _Shape, earlier: Sequence[_Shape], dims: Dims) -> Expr:
    """Return the numbers of a shape, none where an earlier one equals it."""
    rows, columns = shape
    parts = rows.divisor(dims) * columns.divisor(dims)
    size = exact_div(rows.numbers * columns.numbers, parts)
    rivals = [other for other in earlier if _can_be_equal(shape, other, dims)]
    if not rivals:
        return size
    return where(either(*(_equal(shape, other, dims) for other in rivals)), 0, size)


def dummy_numbers(tensors: Iterable[Tensor], dims: Dims) -> Expr:
    """Return how many numbers the dummy gradients of some parameters have.

    Parameters
    ----------
    tensors
        Parameters of a rank's layers, those that are no projection included.
    dims
        The axes, of which tp and etp are read.
    """
    found = (projection_sides(tensor) for tensor in tensors)
    shapes = list(dict.fromkeys(shape for shape in found if shape))
    return total(_size(s, shapes[:i], dims) for i, s in enumerate(shapes))
