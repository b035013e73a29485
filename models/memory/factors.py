"""Second moments that are kept by rows and columns of a matrix.

Source: transformers.Adafactor, whose state of a matrix is one number for each row and
one for each column, and of a vector one for each number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..expr import exact_div, product, total
from ..parameters import embedding_tensors, head_tensors, local_count, mtp_tensors

if TYPE_CHECKING:
    from ..expr import Expr
    from ..parameters import Tensor
    from ..stages import Stage
    from .state import State


def factor_numbers(state: State, stage: Stage) -> Expr:
    """Return how many numbers a rank keeps; tied embeddings count once.

    Parameters
    ----------
    state
        Parameters of the ranks.
    stage
        The rank's chunks.
    """
    arch = state.architecture
    terms = []
    by_kind = [_sum(state, state.layer_tensors(kind)) for kind in arch.kinds]
    for chunk in stage:
        terms += [n * size for n, size in zip(chunk.layers, by_kind, strict=True) if n]
        if chunk.mtp:
            terms.append(chunk.mtp * _sum(state, mtp_tensors(arch)))
    first = any(chunk.embedding for chunk in stage)
    last = any(chunk.head for chunk in stage)
    predicts = any(chunk.mtp for chunk in stage)
    if first or predicts:
        terms.append(_sum(state, embedding_tensors(arch)))
    if last:
        tied = arch.tied and (first or predicts)
        head = head_tensors(arch)
        kept = [t for t in head if not (tied and t.name == "output_layer.weight")]
        terms.append(_sum(state, kept))
    return total(terms)


def _sum(state: State, tensors: object) -> Expr:
    assert isinstance(tensors, (list, tuple))
    return total(_factors(state, tensor) for tensor in tensors)


def _factors(state: State, tensor: Tensor) -> Expr:
    """Return rows and columns of a matrix on a rank, or the numbers of a vector."""
    dims = state.dims
    if not tensor.is_matrix:
        return local_count(tensor, dims, state.rows)
    rows, columns = tensor.shape[-2:]
    if tensor.shard == "vocab":
        return state.rows + columns
    axis = {"expert": dims.etp, "replicated": None}.get(tensor.shard, dims.tp)
    if axis is None:
        size = total((rows, columns))
    elif tensor.by_rows:
        size = exact_div(rows, axis) + columns
    else:
        size = exact_div(columns, axis) + rows
    if tensor.shard == "expert":
        return product((exact_div(tensor.shape[0], dims.ep), size))
    return size
