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
def layers_per_chunk(split: int, num_layers: int, chunks: int) -> tuple[int, ...]:
    """Return the number of decoder layers of every chunk along the model.

    ``even``: all equal. ``balanced``: none differs by more than one; the chunks
    that hold one less are the last and the first ones (they also hold head and
    embedding), taken in turn from the last. ``first-last``: all equal but the first
    and the last, which share what is left, the first having one more if it is odd;
    the middle takes the smallest size that leaves each of them no larger than it.

    Returns
    -------
    tuple of int
        Empty where the family has no member of this size.
    """
    base, extra = divmod(num_layers, chunks)
    match SPLITS[split]:
        case "even":
            return (base,) * chunks if extra == 0 and base else ()
        case "balanced":
            return _balanced(base, extra, chunks) if base and extra else ()
        case "first-last":
            return _first_last(num_layers, chunks)
        case name:
            raise AssertionError(f"no split family {name}")


def _balanced(base: int, extra: int, chunks: int) -> tuple[int, ...]:
    short = chunks - extra
    at_end = (short + 1) // 2
    at_start = short - at_end
    return (base,) * at_start + (base + 1,) * extra + (base,) * at_end


def _first_last(num_layers: int, chunks: int) -> tuple[int, ...]:
    if chunks < 3:
        return ()
    middle = -(-num_layers // chunks)
    ends = num_layers - (chunks - 2) * middle
    if ends < 2 or ends >= 2 * middle:
        return ()
    return (ends - ends // 2, *(middle,) * (chunks - 2), ends // 2)


@lru_cache(maxsize=4096)
def stages(
    architecture: Architecture, split: int, pp: int, vpp: int
) -> tuple[Stage, ...]:
    """Return for each pipeline rank its chunks; empty if the split has no member."""
    counts = layers_per_chunk(split, architecture.num_layers, pp * vpp)
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
