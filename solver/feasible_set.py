"""The complete set of feasible configurations, as a value.

The set is kept factored, never as rows: *skeletons* (all axes but the inner ones),
for each a bit for every *cell* of inner choices, and for classes of both the choices
of *flags* that multiply them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from ..models.layout import DECIDED, DERIVED, Layout
from .inner import Cells, Flags

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..models.expr import Array
    from ..models.problem import Problem
    from .space import Space

Engine = Literal["vector", "cpsat", "both"]
Bits = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
#: The axes that every configuration names, in the order that sorts a set.
NAMES = (*DECIDED, *DERIVED)
#: Cells of skeletons that are unpacked at a time.
_BLOCK = 1 << 22


@dataclass(frozen=True, kw_only=True)
class FeasibleSet:
    """Every configuration of a space that the rules allow and that fits.

    Attributes
    ----------
    skeletons
        For each skeleton axis its codes, shape [n], rows in lexicographic order.
    cells
        The cells of inner choices.
    bits
        For each skeleton which cells are in the set, packed eight to a byte in the
        order of the cells, shape [n, bytes].
    flags
        How many configurations, one for each choice of flags, a cell is.
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
    cells: Cells
    bits: Bits
    flags: Flags
    legal_count: int
    engine: Engine
    rules_only: bool

    @cached_property
    def per_skeleton(self) -> Array:
        """Number of configurations of each skeleton, shape [n]."""
        return configurations(self.bits, self.flags)

    @cached_property
    def count(self) -> int:
        """Number of configurations."""
        return int(self.per_skeleton.sum())

    @property
    def choices(self) -> int:
        """Number of cells of one skeleton."""
        return self.cells.count

    @property
    def inner(self) -> Mapping[str, Array]:
        """For each axis of the cells its code in every cell, shape [cells]."""
        return self.cells.columns

    @property
    def names(self) -> tuple[str, ...]:
        """Every axis of a row: skeleton, cell, flags."""
        return (*self.skeletons, *self.inner, *self.flags.choices)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the set, the same on every machine and for every engine."""
        digest = hashlib.sha256(",".join(self.names).encode())
        for table in (self.inner, self.skeletons, self.flags.choices):
            for name in table:
                digest.update(np.ascontiguousarray(table[name], "<i8").tobytes())
        if not self.flags.choices:
            digest.update(self.bits.tobytes())
            return digest.hexdigest()
        for start, mask in self._blocks():
            rows = self.flags.rows[start : start + len(mask)]
            choices = np.packbits(self.flags.allowed, axis=2)
            left = choices[rows][:, self.flags.cells] * mask[:, :, None]
            digest.update(left.tobytes())
        return digest.hexdigest()

    def _blocks(self) -> Iterator[tuple[int, Mask]]:
        """Yield the first skeleton of each block, and which cells it has."""
        size = max(_BLOCK // max(self.choices, 1), 1)
        for start in range(0, len(self.bits), size):
            part = np.unpackbits(
                self.bits[start : start + size], axis=1, count=self.choices
            )
            yield start, part.view(bool)

    @cached_property
    def columns(self) -> Mapping[str, Array]:
        """One row a configuration, all axes by name; costs memory for each row."""
        return self.rows(0, len(self.bits))

    def rows(self, start: int, stop: int) -> dict[str, Array]:
        """Return the configurations of some skeletons as rows."""
        bits = self.bits[start:stop]
        at, cell = np.nonzero(np.unpackbits(bits, axis=1, count=self.choices))
        at = at + start
        kinds = self.flags.allowed[self.flags.rows[at], self.flags.cells[cell]]
        pair, choice = np.nonzero(kinds)
        at, cell = at[pair], cell[pair]
        table = {n: c[at] for n, c in self.skeletons.items()}
        table |= {n: c[cell] for n, c in self.inner.items()}
        return table | {n: c[choice] for n, c in self.flags.choices.items()}

    def layouts(self) -> Iterator[Layout]:
        """Yield the configurations one by one, in order."""
        points = self.choices * self.flags.allowed.shape[2]
        step = min(max(_BLOCK // max(points, 1), 1), 256)
        for start in range(0, len(self.bits), step):
            yield from layouts_of(self.rows(start, start + step))

    def where(self, **allowed: tuple[int, ...]) -> FeasibleSet:
        """Return the configurations whose axes have one of some codes.

        Parameters
        ----------
        **allowed
            For an axis of ``names`` the codes to keep.
        """
        rows = np.ones(len(self.bits), bool)
        cells = np.ones(self.choices, bool)
        choices = np.ones(self.flags.allowed.shape[2], bool)
        for name, codes in allowed.items():
            for table, mask in (
                (self.skeletons, rows),
                (self.inner, cells),
                (self.flags.choices, choices),
            ):
                if name in table:
                    mask &= np.isin(table[name], codes)
        flags = Flags(
            self.flags.choices,
            self.flags.rows,
            self.flags.cells,
            self.flags.allowed & choices,
        )
        bits = self.bits & np.packbits(cells) & np.uint8(255) * rows[:, None]
        return self._with(bits, flags)

    def _with(self, bits: Bits, flags: Flags) -> FeasibleSet:
        """Return the set with other bits, skeletons without any dropped."""
        bits = with_choices(bits, flags)
        keep = np.flatnonzero(bits.any(axis=1))
        return FeasibleSet(
            problem=self.problem,
            space=self.space,
            skeletons={n: c[keep] for n, c in self.skeletons.items()},
            cells=self.cells,
            bits=bits[keep],
            flags=flags.kept(keep),
            legal_count=self.legal_count,
            engine=self.engine,
            rules_only=self.rules_only,
        )

    def __contains__(self, layout: object) -> bool:
        """Whether a layout is in the set."""
        if not isinstance(layout, Layout):
            return False
        point = layout.point()
        found = []
        for table, size in (
            (self.skeletons, len(self.bits)),
            (self.inner, self.choices),
            (self.flags.choices, self.flags.allowed.shape[2]),
        ):
            match = np.ones(size, bool)
            for name, codes in table.items():
                match &= codes == point[name]
            found.append(np.flatnonzero(match))
        if not all(len(where) for where in found):
            return False
        row, cell, choice = (int(where[0]) for where in found)
        byte, bit = divmod(cell, 8)
        inside = self.bits[row, byte] >> (7 - bit) & 1
        kinds = self.flags.allowed[self.flags.rows[row], self.flags.cells[cell]]
        return bool(inside) and bool(kinds[choice])

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
        ends = np.cumsum(self.per_skeleton)
        picks = np.random.default_rng(seed).integers(0, self.count, size)
        return [self._at(int(pick), ends) for pick in picks]

    def _at(self, pick: int, ends: Array) -> Layout:
        """Return one configuration by its place in the order of the set."""
        row = int(np.searchsorted(ends, pick, side="right"))
        left = pick - int(ends[row] - self.per_skeleton[row])
        mask = np.unpackbits(self.bits[row], count=self.choices)
        kinds = self.flags.allowed[self.flags.rows[row]]
        inside = np.cumsum(
            mask * self.flags.number[self.flags.rows[row]][self.flags.cells]
        )
        cell = int(np.searchsorted(inside, left, side="right"))
        left -= int(inside[cell - 1]) if cell else 0
        choice = int(np.flatnonzero(kinds[self.flags.cells[cell]])[left])
        point = {n: int(c[row]) for n, c in self.skeletons.items()}
        point |= {n: int(c[cell]) for n, c in self.inner.items()}
        point |= {n: int(c[choice]) for n, c in self.flags.choices.items()}
        return Layout.from_point(point)


def layouts_of(columns: Mapping[str, Array]) -> Iterator[Layout]:
    """Yield the layouts of some rows."""
    names = list(columns)
    for row in zip(*(columns[n].tolist() for n in names), strict=True):
        yield Layout.from_point(dict(zip(names, row, strict=True)))


def configurations(bits: Bits, flags: Flags) -> Array:
    """Return the number of configurations of each row of bits, shape [n]."""
    found = np.zeros(len(bits), np.int64)
    for kind in range(flags.allowed.shape[1]):
        mine = np.packbits(flags.cells == kind)
        cells = np.bitwise_count(bits & mine).sum(axis=1, dtype=np.int64)
        found += cells * flags.number[flags.rows, kind]
    return found


def with_choices(bits: Bits, flags: Flags) -> Bits:
    """Clear the cells to which the rules leave no choice of flags."""
    left = np.packbits((flags.number > 0)[:, flags.cells], axis=1)
    return bits & left[flags.rows]


def in_order(
    skeletons: Mapping[str, Array], bits: Bits, flags: Flags
) -> tuple[dict[str, Array], Bits, Flags]:
    """Sort skeletons, and drop those without a configuration."""
    keep = np.flatnonzero(bits.any(axis=1))
    order = np.lexsort([skeletons[n][keep] for n in reversed(list(skeletons))])
    keep = keep[order]
    return {n: c[keep] for n, c in skeletons.items()}, bits[keep], flags.kept(keep)


def folded(
    columns: Mapping[str, Array], names: tuple[str, ...], cells: Cells, flags: Flags
) -> tuple[dict[str, Array], Bits, Flags]:
    """Fold rows, one a configuration, into skeletons, bits and choices of flags.

    Parameters
    ----------
    columns
        Every axis, shape [rows].
    names
        The axes of a skeleton.
    cells, flags
        The cells; the choices of flags (what is allowed is read from the rows).
    """
    stacked = np.stack([columns[n] for n in names], axis=1)
    distinct, row = np.unique(stacked, axis=0, return_inverse=True)
    cell = places(cells.columns, columns)
    choice = places(flags.choices, columns)
    size = flags.allowed.shape[2]
    allowed = np.zeros((len(distinct), cells.count, size), bool)
    allowed[row.reshape(-1), cell, choice] = True
    own = Flags(
        flags.choices,
        np.arange(len(distinct), dtype=np.int64),
        np.arange(cells.count, dtype=np.int64),
        allowed,
    )
    bits = np.packbits(own.number > 0, axis=1)
    return {n: distinct[:, i] for i, n in enumerate(names)}, bits, own


def places(table: Mapping[str, Array], columns: Mapping[str, Array]) -> Array:
    """Return for each row of some columns its place in a table of distinct rows."""
    if not table:
        return np.zeros(len(next(iter(columns.values()))), np.int64)
    both = [np.concatenate([c, columns[n]]) for n, c in table.items()]
    _, number = np.unique(np.stack(both, axis=1), axis=0, return_inverse=True)
    size = len(next(iter(table.values())))
    place = np.full(int(number.max(initial=0)) + 1, -1, np.int64)
    place[number.reshape(-1)[:size]] = np.arange(size)
    found = place[number.reshape(-1)[size:]]
    assert (found >= 0).all(), "a configuration outside its own space"
    return found
