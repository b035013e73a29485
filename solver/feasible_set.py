"""The complete set of feasible configurations, as a value.

The set is kept factored, never as rows: *skeletons* (all axes but the inner ones)
and for each a bit for every combination of inner choices.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from ..models.layout import DECIDED, DERIVED, Layout
from .domains import INNER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..models.expr import Array
    from ..models.problem import Problem
    from .space import Space

Engine = Literal["vector", "cpsat", "both"]
Bits = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
#: Every axis, and those of a skeleton, in the order that sorts a set.
NAMES = (*DECIDED, *DERIVED)
SKELETON = tuple(n for n in NAMES if n not in INNER)


@dataclass(frozen=True, kw_only=True)
class FeasibleSet:
    """Every configuration of a space that the rules allow and that fits.

    Attributes
    ----------
    skeletons
        For each skeleton axis its codes, shape [n], rows in lexicographic order.
    inner
        For each inner axis its codes, shape [k] of that axis, ascending.
    bits
        For each skeleton which inner choices are in the set, packed eight to a
        byte in the order of the inner axes' product, shape [n, bytes].
    legal_count
        Configurations that the rules allow, whether they fit or not.
    engine
        What found the set; ``both`` means that two engines found the same one.
    rules_only
        Whether memory was left out.
    """

    problem: Problem
    space: Space
    skeletons: Mapping[str, Array]
    inner: Mapping[str, Array]
    bits: Bits
    legal_count: int
    engine: Engine
    rules_only: bool

    @cached_property
    def count(self) -> int:
        """Number of configurations."""
        return int(np.bitwise_count(self.bits).sum(dtype=np.int64))

    @property
    def choices(self) -> int:
        """Number of combinations of inner choices of one skeleton."""
        size = 1
        for codes in self.inner.values():
            size *= len(codes)
        return size

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the set, the same on every machine and for every engine."""
        digest = hashlib.sha256(",".join((*SKELETON, *INNER)).encode())
        for name in INNER:
            digest.update(np.ascontiguousarray(self.inner[name], "<i8").tobytes())
        for name in SKELETON:
            digest.update(np.ascontiguousarray(self.skeletons[name], "<i8").tobytes())
        digest.update(self.bits.tobytes())
        return digest.hexdigest()

    @cached_property
    def columns(self) -> Mapping[str, Array]:
        """One row a configuration, all axes by name; costs memory for each row."""
        return self.rows(0, len(self.skeletons["tp"]))

    def rows(self, start: int, stop: int) -> dict[str, Array]:
        """Return the configurations of some skeletons as rows."""
        mask = np.unpackbits(self.bits[start:stop], axis=1, count=self.choices)
        at, cell = np.nonzero(mask)
        table = {n: c[start:stop][at] for n, c in self.skeletons.items()}
        shape = tuple(len(codes) for codes in self.inner.values())
        cells = np.unravel_index(cell, shape)
        pairs = zip(self.inner.items(), cells, strict=True)
        return table | {n: codes[i] for (n, codes), i in pairs}

    def layouts(self) -> Iterator[Layout]:
        """Yield the configurations one by one, in order."""
        for start in range(0, len(self.skeletons["tp"]), 256):
            columns = self.rows(start, start + 256)
            for i in range(len(columns["tp"])):
                yield Layout(**{n: int(columns[n][i]) for n in NAMES})

    def __contains__(self, layout: object) -> bool:
        """Whether a layout is in the set."""
        if not isinstance(layout, Layout):
            return False
        point, n = layout.point(), len(self.skeletons["tp"])
        match = np.ones(n, bool)
        for name in SKELETON:
            match &= self.skeletons[name] == point[name]
        cell = 0
        for name, codes in self.inner.items():
            at = np.flatnonzero(codes == point[name])
            if not len(at):
                return False
            cell = cell * len(codes) + int(at[0])
        where = np.flatnonzero(match)
        byte, bit = divmod(cell, 8)
        return bool(len(where)) and bool(self.bits[where[0], byte] >> (7 - bit) & 1)

    def sample(self, size: int, seed: int = 0) -> list[Layout]:
        """Draw configurations uniformly, with replacement.

        Parameters
        ----------
        size
            How many to draw; none come from an empty set.
        seed
            Of the generator; the same seed draws the same layouts.
        """
        if not self.count:
            return []
        per_row = np.bitwise_count(self.bits).sum(axis=1, dtype=np.int64)
        ends = np.cumsum(per_row)
        picks = np.random.default_rng(seed).integers(0, self.count, size)
        drawn = []
        for pick in picks:
            row = int(np.searchsorted(ends, pick, side="right"))
            columns = self.rows(row, row + 1)
            i = int(pick - (ends[row] - per_row[row]))
            drawn.append(Layout(**{n: int(columns[n][i]) for n in NAMES}))
        return drawn


def fold(
    skeletons: Mapping[str, Array],
    inner: Mapping[str, Array],
    mask: npt.NDArray[np.bool_],
) -> tuple[dict[str, Array], Bits]:
    """Sort skeletons, pack their masks, and drop those without a choice.

    Parameters
    ----------
    skeletons
        Axes by name, shape [n].
    inner
        Inner axes by name.
    mask
        Shape [n, k of each inner axis in turn].
    """
    choices = int(np.prod(mask.shape[1:]))
    flat = mask.reshape(len(mask), choices)
    keep = flat.any(axis=1)
    table = {n: skeletons[n][keep] for n in SKELETON}
    order = np.lexsort([table[n] for n in reversed(SKELETON)])
    packed = np.packbits(flat[keep], axis=1)[order]
    return {n: column[order] for n, column in table.items()}, packed


def fold_rows(
    columns: Mapping[str, Array], inner: Mapping[str, Array]
) -> tuple[dict[str, Array], Bits]:
    """Fold rows, one a configuration, into skeletons and masks."""
    table = np.stack([columns[n] for n in SKELETON], axis=1)
    distinct, row = np.unique(table, axis=0, return_inverse=True)
    cells = [np.searchsorted(codes, columns[n]) for n, codes in inner.items()]
    mask = np.zeros((len(distinct), *(len(c) for c in inner.values())), bool)
    mask[(row.ravel(), *cells)] = True
    skeletons = {n: distinct[:, i] for i, n in enumerate(SKELETON)}
    return fold(skeletons, inner, mask)
