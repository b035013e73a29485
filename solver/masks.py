"""Sets of broken constraints as bits: classes of points, minimal masks, hitting sets.

Over a space, a *correction* is a minimal set of constraints without which some point
is feasible, and a *conflict* a minimal set of constraints that no point keeps at
once. The minimal masks are the corrections; their minimal hitting sets the conflicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..models.expr import Evaluator
from .vector import spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..models.expr import Array, Expr

Labels = npt.NDArray[np.int64]
#: Bits of one word; a mask is as many words as there are broken constraints.
_WORD = 62
_DENSE = 1 << 22


def classes(
    bodies: Sequence[Expr], rows: Mapping[str, Array], inner: Mapping[str, Array]
) -> tuple[Labels, list[int]]:
    """Sort the points of a block by the set of constraints that they break.

    Parameters
    ----------
    bodies
        The constraints; bit ``i`` of a mask stands for the ``i``-th.
    rows, inner
        Skeletons, shape [n], and for each inner axis its codes, shape [k].

    Returns
    -------
    labels
        For each point the number of its class, shape [n, k of each inner axis].
    masks
        For each class the constraints that its points break, as bits.
    """
    shape = (len(rows["pp"]), *(len(codes) for codes in inner.values()))
    evaluate = Evaluator(spread(rows, inner))
    by_row, by_point = _Words(), _Words()
    for bit, body in enumerate(bodies):
        broken = evaluate(body) == 0
        if broken.any():
            alone = broken.size in (1, shape[0]) and broken.shape[:1] != (1,)
            (by_row if alone else by_point).add(bit, broken)
    outer, outer_masks = by_row.labels((shape[0], *(1,) * len(inner)))
    point, point_masks = by_point.labels((1,) * len(shape))
    number = len(point_masks)
    joint = np.broadcast_to(outer * number + point, shape)
    present, labels = _compressed(joint, len(outer_masks) * number)
    pairs = (divmod(int(p), number) for p in present)
    return labels, [outer_masks[a] | point_masks[b] for a, b in pairs]


class _Words:
    """Broken constraints as words of bits; only those that some point breaks."""

    def __init__(self) -> None:
        self._bits: list[list[int]] = []
        self._words: list[npt.NDArray[np.int64]] = []

    def add(self, bit: int, broken: npt.NDArray[np.bool_]) -> None:
        if not self._bits or len(self._bits[-1]) == _WORD:
            self._bits.append([])
            self._words.append(np.zeros((1,) * broken.ndim, np.int64))
        place = np.int64(len(self._bits[-1]))
        self._words[-1] = self._words[-1] | broken.astype(np.int64) << place
        self._bits[-1].append(bit)

    def labels(self, shape: tuple[int, ...]) -> tuple[Labels, list[int]]:
        """Number the distinct sets of words, and return their masks."""
        labels, masks = np.zeros(shape, np.int64), [0]
        for bits, word in zip(self._bits, self._words, strict=True):
            values, index = np.unique(word, return_inverse=True)
            joint = labels * len(values) + index.reshape(word.shape)
            present, labels = _compressed(joint, len(masks) * len(values))
            pairs = [divmod(int(p), len(values)) for p in present]
            masks = [masks[a] | _spread_bits(int(values[b]), bits) for a, b in pairs]
        return labels, masks


def _compressed(joint: Labels, size: int) -> tuple[Labels, Labels]:
    """Return the labels in use, and each point's place among them."""
    if size > _DENSE:
        present, index = np.unique(joint, return_inverse=True)
        return present, index.reshape(joint.shape).astype(np.int64)
    seen = np.zeros(size, bool)
    seen[joint] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[joint]


def _spread_bits(word: int, bits: Sequence[int]) -> int:
    return sum(1 << bit for i, bit in enumerate(bits) if word >> i & 1)


def minimal(masks: Iterable[int]) -> list[int]:
    """Return the masks that contain no other one, smallest first."""
    kept: list[int] = []
    for mask in sorted(set(masks), key=lambda m: (m.bit_count(), m)):
        if not any(mask & k == k for k in kept):
            kept.append(mask)
    return kept


def hitting_sets(masks: list[int]) -> list[int]:
    """Return every minimal set of bits that meets each mask.

    Berge's method: the sets for the first masks are extended mask by mask.
    """
    found = [0]
    for mask in masks:
        bits = [1 << i for i in range(mask.bit_length()) if mask >> i & 1]
        met = [h for h in found if h & mask]
        missed = [h | b for h in found if not h & mask for b in bits]
        found = minimal([*met, *missed])
    return found
