"""Parameters of every component on one rank, as arrays over layouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..parameters import (
    embedding_tensors,
    head_tensors,
    layer_tensors,
    mtp_tensors,
)
from .ends import vocabulary_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..architecture import Architecture
    from ..parameters import Tensor
    from .work import Floats


@dataclass(frozen=True)
class Weights:
    """Parameters of a component on one rank: dense ones, and experts' ones."""

    dense: Floats
    expert: Floats


def weights_of(
    tensors: Iterable[Tensor], arch: Architecture, axes: Mapping[str, Floats]
) -> Weights:
    """Count the numbers of some tensors on one rank.

    Parameters
    ----------
    tensors
        Of one component.
    axes
        ``tp``, ``ep`` and ``etp``.
    """
    count = dict.fromkeys(
        ("column", "row", "replicated", "vocab", "expert", "expert-bias"), 0
    )
    for tensor in tensors:
        count[tensor.shard] += tensor.count
    padding = vocabulary_rows(arch.vocab, axes["tp"]) / arch.vocab
    dense = (count["column"] + count["row"]) / axes["tp"]
    dense = dense + count["replicated"] + count["vocab"] * padding
    expert = count["expert"] / (axes["ep"] * axes["etp"])
    return Weights(dense, expert + count["expert-bias"] / axes["ep"])


def component_tensors(arch: Architecture) -> list[tuple[Tensor, ...]]:
    """Return the tensors of every component: layer kinds, MTP layer, both ends."""
    return [
        *(layer_tensors(arch, kind) for kind in arch.kinds),
        mtp_tensors(arch) if arch.mtp_layers else (),
        embedding_tensors(arch),
        head_tensors(arch),
    ]
