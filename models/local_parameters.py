"""How many numbers of the model's parameters lie on one rank."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from .expr import ceil_div, exact_div, total

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .architecture import Architecture
    from .expr import Expr
    from .layout import Dims
    from .parameters import Tensor

#: Megatron's ``--make-vocab-size-divisible-by``: rows per rank are a multiple of it.
VOCAB_MULTIPLE = 128


def vocab_rows(
    architecture: Architecture, dims: Dims, multiple: int = VOCAB_MULTIPLE
) -> Expr:
    """Return a rank's rows of embedding and head, after padding.

    The vocabulary is padded to a multiple of ``multiple * tp`` (Megatron's
    ``--make-vocab-size-divisible-by``, 128 unless given).
    """
    return multiple * ceil_div(architecture.vocab, multiple * dims.tp)


def local_count(tensor: Tensor, dims: Dims, rows: Expr) -> Expr:
    """Return how many numbers of a tensor lie on one rank.

    Parameters
    ----------
    tensor
        The tensor; the fused query/key/value projection is divided by tp even where
        tp exceeds the key/value heads.
    dims
        The axes.
    rows
        A rank's rows of the padded vocabulary.
    """
    match tensor.shard:
        case "column" | "row":
            return exact_div(tensor.count, dims.tp)
        case "vocab":
            return rows * prod(tensor.shape[1:])
        case "expert":
            return exact_div(tensor.count, dims.ep * dims.etp)
        case "expert-bias":
            return exact_div(tensor.count, dims.ep)
        case "replicated":
            return total((tensor.count,))


def local_counts(
    tensors: Iterable[Tensor], dims: Dims, rows: Expr
) -> tuple[Expr, Expr]:
    """Return a rank's numbers in dense tensors and in experts' tensors.

    The two are apart because different groups of ranks hold the same ones: dp * cp
    for dense tensors, edp for experts.
    """
    dense: list[Expr] = []
    expert: list[Expr] = []
    for tensor in tensors:
        is_expert = tensor.shard in ("expert", "expert-bias")
        (expert if is_expert else dense).append(local_count(tensor, dims, rows))
    return total(dense), total(expert)
