"""Where the stages of a model lie: which rank and chunk each one is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from .arrays import Ints

Shape = Literal["loop", "v", "bidirectional"]


@dataclass(frozen=True)
class Placement:
    """The paths of micro-batches through ranks and chunks.

    Attributes
    ----------
    pp, chunks
        Ranks, and chunks of each.
    paths
        For each path, the rank and chunk of every stage from input to loss. A
        micro-batch takes one path; schedules in one direction have one.
    """

    pp: int
    chunks: int
    paths: tuple[tuple[tuple[int, int], ...], ...]

    @cached_property
    def previous(self) -> Ints:
        """Rank and chunk before each stage, shape [pp, chunks, 2], -1 at the input."""
        return self._neighbours(-1)

    @cached_property
    def following(self) -> Ints:
        """Rank and chunk after each stage, shape [pp, chunks, 2], -1 at the loss."""
        return self._neighbours(1)

    def _neighbours(self, step: int) -> Ints:
        table = np.full((self.pp, self.chunks, 2), -1, np.int64)
        for path in self.paths:
            for i, (rank, chunk) in enumerate(path):
                if 0 <= i + step < len(path):
                    table[rank, chunk] = path[i + step]
        return table


@lru_cache(maxsize=1024)
def placement(shape: Shape, pp: int, chunks: int) -> Placement:
    """Return one of the known placements.

    Parameters
    ----------
    shape
        ``loop``: stage s is chunk s // pp of rank s % pp. ``v``: two chunks, the
        second half of the stages runs back from the last rank to the first.
        ``bidirectional``: two paths of pp stages, chunk 1 is the path from the
        last rank to the first.
    """
    down = tuple(range(pp))
    if shape == "loop":
        paths = (tuple((r, c) for c in range(chunks) for r in down),)
    elif shape == "v":
        assert chunks == 2, "a V has two chunks a rank"
        paths = ((*((r, 0) for r in down), *((r, 1) for r in reversed(down))),)
    else:
        assert chunks == 2, "two directions need two chunks a rank"
        forth = tuple((r, 0) for r in down)
        back = tuple((r, 1) for r in reversed(down))
        return Placement(pp, chunks, (forth, back))
    return Placement(pp, chunks, paths)
