"""Every minimal correction of a request, with the fewest bytes missing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ...models.layout import Layout
from ..answer import Correction
from ..masks import classes, minimal
from ..peaks import Peaks
from ..vector import Points
from .raw import blocks, inner_grid, raw_rows, whole_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...models.expr import Array, Expr
    from ..masks import Labels
    from .limits import Request
    from .raw import Grid

MEMORY = "memory"


@dataclass(frozen=True)
class _Least:
    """The point of a mask that lacks least, and how many bytes it lacks."""

    missing: int
    point: dict[str, int]


def corrections(request: Request) -> tuple[tuple[Correction, ...], int]:
    """Return every minimal correction, smallest first, and the points looked at.

    Every raw point is looked at: the rules and limits it breaks, and whether it fits.
    Values that limits leave out are tried where fewer limits do not suffice. A point
    whose split has no member is measured with the first family that has one.
    """
    search = _Search(request)
    search.run()
    found = sorted(search.found.items(), key=lambda f: (f[0].bit_count(), f[0]))
    return tuple(
        Correction(
            rules=search.names_of(mask),
            missing_bytes=least.missing,
            witness=Layout.from_point(least.point),
        )
        for mask, least in found
    ), search.points


def mask_of(ids: tuple[str, ...], names: list[str]) -> int:
    """Return a set of constraints as bits."""
    return sum(1 << names.index(name) for name in ids)


def varying(request: Request) -> list[tuple[str, Expr]]:
    """Return the rules that some point may break, by id."""
    rules = request.wide.rules
    return [(r.id, b) for r, b in rules if b.constant is None or not b.lo]


class _Search:
    def __init__(self, request: Request) -> None:
        self.request, self.memory = request, Peaks(request.wide)
        rules = varying(request)
        self.bodies = [body for _, body in rules]
        limits = [limit.id for limit in request.limits]
        self.names = [*(name for name, _ in rules), *limits, MEMORY]
        self.found: dict[int, _Least] = {}
        self.points = 0

    def names_of(self, mask: int) -> tuple[str, ...]:
        return tuple(name for i, name in enumerate(self.names) if mask >> i & 1)

    def run(self) -> None:
        ids = [limit.id for limit in self.request.limits]
        for size in range(len(ids) + 1):
            for broken in combinations(ids, size):
                bits = mask_of(broken, self.names)
                if not any(mask & bits == mask for mask in self.found):
                    self._level(frozenset(broken), bits)

    def _level(self, broken: frozenset[str], bits: int) -> None:
        """Look at the points that break just these limits."""
        wide, values = self.request.wide, self.request.values(broken)
        inner = inner_grid(wide, values)
        rows = whole_rows(wide, values) if broken else raw_rows(wide, values)
        for block in blocks(rows, inner):
            labels, masks = classes(self.bodies, block, inner)
            self.points += labels.size
            self._add(block, inner, labels, [mask | bits for mask in masks])

    def _add(self, rows: Grid, inner: Grid, labels: Labels, masks: list[int]) -> None:
        """Take a block's minimal masks into what was found."""
        alive = np.array([not self._dominated(m) for m in masks], bool)
        depth = tuple(range(1, labels.ndim))
        keep = alive[labels].any(axis=depth)
        rows, labels = {n: c[keep] for n, c in rows.items()}, labels[keep]
        missing = self._missing(rows, inner, labels.shape)
        doubled = labels * 2 + (missing > 0)
        memory = 1 << len(self.names) - 1
        for code, mask in self._minimal(doubled, masks, memory):
            own = np.where(doubled == code, missing, np.iinfo(np.int64).max)
            at = np.unravel_index(int(np.argmin(own)), labels.shape)
            least = max(int(missing[at]), 0)
            if mask not in self.found or least < self.found[mask].missing:
                point = {n: int(c[at[0]]) for n, c in rows.items()}
                cells = zip(inner.items(), at[1:], strict=True)
                point |= {n: int(c[i]) for (n, c), i in cells}
                self.found[mask] = _Least(least, point)
        kept = set(minimal(self.found))
        self.found = {m: f for m, f in self.found.items() if m in kept}

    def _dominated(self, mask: int) -> bool:
        """Whether a point that breaks all this is no minimal one, fitting or not."""
        return any(mask & found == found and mask != found for found in self.found)

    def _missing(self, rows: Grid, inner: Grid, shape: tuple[int, ...]) -> Array:
        points = Points(skeletons=rows, inner=inner, legal=np.ones(shape, bool))
        return self.memory.of_points(points) - self.memory.limit

    def _minimal(
        self, doubled: Labels, masks: list[int], memory: int
    ) -> Iterator[tuple[int, int]]:
        """Yield the classes of a block that nothing found is within, as masks."""
        seen = np.flatnonzero(np.bincount(doubled.ravel(), minlength=1))
        of = {int(c): masks[c // 2] | (memory if c % 2 else 0) for c in seen}
        kept = set(minimal([*of.values(), *self.found]))
        yield from ((code, mask) for code, mask in of.items() if mask in kept)
