"""Pipeline stages: which layers lie on which rank, by split family.

A *chunk* is a run of consecutive decoder layers; a rank holds ``vpp`` of them.
Chunk ``j`` of rank ``r`` is the ``j * pp + r``-th along the model.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from .layout import SPLITS

if TYPE_CHECKING:
    from .architecture import Architecture


@dataclass(frozen=True)
class Chunk:
    """Consecutive layers on one rank.

    Attributes
    ----------
    layers
        Number of decoder layers of each kind of the architecture.
    mtp
        Multi-token-prediction layers.
    embedding, head
        Whether the input embedding, and the output head with the loss, are here.
    """

    layers: tuple[int, ...]
    mtp: int
    embedding: bool
    head: bool


Stage = tuple[Chunk, ...]


@lru_cache(maxsize=4096)
def layers_per_chunk(split: int, num_layers: int, pp: int, vpp: int) -> tuple[int, ...]:
    """Return the number of decoder layers of every chunk along the model.

    ``even``: all equal. ``balanced``: none differs by more than one; the chunks
    that hold one less are the last and the first ones (they also hold head and
    embedding), taken in turn from the last. ``first-last``: all ranks equal but the
    first and the last, which share what is left, the first taking more where it
    does not halve; a rank's layers are cut evenly into its chunks. The middle ranks
    have the smallest size with which neither end is larger than they are.

    Returns
    -------
    tuple of int
        ``pp * vpp`` sizes; empty where the family has no member of this shape.
    """
    base, extra = divmod(num_layers, pp * vpp)
    match SPLITS[split]:
        case "even":
            return (base,) * (pp * vpp) if extra == 0 and base else ()
        case "balanced":
            return _balanced(base, extra, pp * vpp) if base and extra else ()
        case "first-last":
            return _first_last(num_layers, pp, vpp)
        case name:
            raise AssertionError(f"no split family {name}")


def _balanced(base: int, extra: int, chunks: int) -> tuple[int, ...]:
    short = chunks - extra
    at_end = (short + 1) // 2
    at_start = short - at_end
    return (base,) * at_start + (base + 1,) * extra + (base,) * at_end


def _first_last(num_layers: int, pp: int, vpp: int) -> tuple[int, ...]:
    if pp < 3 or num_layers % vpp:
        return ()
    rows = num_layers // vpp  # layers that the chunks of one depth hold together
    middle = -(-rows // pp)
    ends = rows - (pp - 2) * middle
    if ends < 2 or ends >= 2 * middle:
        return ()
    return (ends - ends // 2, *(middle,) * (pp - 2), ends // 2) * vpp


def split_is_new(split: int, num_layers: int, pp: int, vpp: int) -> bool:
    """Whether the family has a member of this shape that no earlier family has."""
    member = layers_per_chunk(split, num_layers, pp, vpp)
    return bool(member) and all(
        layers_per_chunk(earlier, num_layers, pp, vpp) != member
        for earlier in range(split)
    )


@lru_cache(maxsize=4096)
def stages(
    architecture: Architecture, split: int, pp: int, vpp: int
) -> tuple[Stage, ...]:
    """Return for each pipeline rank its chunks; empty if the split has no member."""
    counts = layers_per_chunk(split, architecture.num_layers, pp, vpp)
    if not counts:
        return ()
    chunks, start = [], 0
    for index, count in enumerate(counts):
        tally = Counter(architecture.kind_of_layer[start : start + count])
        last = index == len(counts) - 1
        chunks.append(
            Chunk(
                layers=tuple(tally[k] for k in range(len(architecture.kinds))),
                mtp=architecture.mtp_layers if last else 0,
                embedding=index == 0,
                head=last,
            )
        )
        start += count
    return tuple(tuple(chunks[j * pp + r] for j in range(vpp)) for r in range(pp))
