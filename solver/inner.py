"""Inner choices: what shapes neither the pipeline nor the process groups.

*Masks* are inner axes that bytes depend on; a *cell* is one choice of all of them.
*Flags* are those that no byte depends on: they multiply a cell's configurations by
the number of choices that the rules leave. Cells are kept as blocks, whose
product they are, so that what depends on one block is evaluated on it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..models.expr import Evaluator, axes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..models.expr import Array, Expr
    from .domains import Domains

Mask = npt.NDArray[np.bool_]
#: Inner axes that bytes depend on, in blocks; axes bound to each other share one.
BLOCKS = (
    ("recompute",),
    ("sharding", "instances", "offload"),
    ("precision",),
    ("cross_entropy",),
    ("dispatcher",),
    ("cp_style",),
)


@dataclass(frozen=True)
class Cells:
    """Every combination of the masks that breaks no rule on one block alone.

    Attributes
    ----------
    blocks
        For each block its axes; arrays of one block have one length, and a row of
        them is one choice.
    """

    blocks: tuple[Mapping[str, Array], ...]

    @staticmethod
    def of(domains: Domains) -> Cells:
        """Return the cells of a problem's space, each block in order of its axes."""
        found = []
        for names in BLOCKS:
            present = [n for n in names if n in domains.masks]
            if present:
                found.append(combinations(domains, present))
        return Cells(tuple(found))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of choices of each block."""
        return tuple(len(next(iter(block.values()))) for block in self.blocks)

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(np.prod(self.shape))

    @cached_property
    def columns(self) -> dict[str, Array]:
        """Each axis at every cell, shape [count]."""
        found = {}
        for i, block in enumerate(self.blocks):
            for name, codes in block.items():
                across = np.broadcast_to(self._placed(codes, i, 0), self.shape)
                found[name] = across.reshape(-1)
        return found

    def grid(self, rows: Mapping[str, Array]) -> dict[str, Array]:
        """Give rows the first dimension and each block one of its own."""
        depth = len(self.blocks)
        table = {n: c.reshape(-1, *(1,) * depth) for n, c in rows.items()}
        for i, block in enumerate(self.blocks):
            table |= {n: self._placed(codes, i, 1) for n, codes in block.items()}
        return table

    def _placed(self, codes: Array, block: int, ahead: int) -> Array:
        after = len(self.blocks) - block - 1
        return codes.reshape(*(1,) * (ahead + block), -1, *(1,) * after)


def combinations(domains: Domains, names: Iterable[str]) -> dict[str, Array]:
    """Return the choices of some axes that break no rule on these axes alone.

    The rows are in lexicographic order of the axes as given.
    """
    names = list(names)
    if not names:
        return {}
    values = [np.asarray(domains.values[n], np.int64) for n in names]
    mesh = np.meshgrid(*values, indexing="ij")
    table = {n: m.reshape(-1) for n, m in zip(names, mesh, strict=True)}
    keep = np.ones(mesh[0].size, bool)
    evaluate = Evaluator(table)
    for _, body in domains.rules:
        if axes(body) and {a.name for a in axes(body)} <= set(names):
            keep &= evaluate(body) != 0
    return {n: c[keep] for n, c in table.items()}


@dataclass(frozen=True)
class Flags:
    """How many configurations a cell of a skeleton is, by classes of both.

    Attributes
    ----------
    choices
        The flags; arrays of one length, a row of them is one choice. Without flags
        there are no arrays, and one choice.
    rows, cells
        The class of each skeleton and of each cell, shapes [n] and [k].
    allowed
        Which choices the rules leave, shape [classes of rows, of cells, choices].
    """

    choices: Mapping[str, Array]
    rows: Array
    cells: Array
    allowed: Mask

    @cached_property
    def number(self) -> Array:
        """Choices left, shape [classes of rows, classes of cells]."""
        return np.asarray(self.allowed.sum(axis=2), np.int64)

    def kept(self, keep: Array) -> Flags:
        """Take some skeletons."""
        return Flags(self.choices, self.rows[keep], self.cells, self.allowed)


def flags_of(domains: Domains, rows: Mapping[str, Array], cells: Cells) -> Flags:
    """Find which choices of flags the rules leave to each cell of each skeleton."""
    choices = combinations(domains, domains.flags)
    size = len(next(iter(choices.values()))) if choices else 1
    if not len(rows["tp"]) or not cells.count:
        none = np.zeros(len(rows["tp"]), np.int64), np.zeros(cells.count, np.int64)
        return Flags(choices, *none, np.zeros((1, 1, size), bool))
    named = set(domains.flags)
    bodies = [b for _, b in domains.rules if {a.name for a in axes(b)} & named]
    bodies = [b for b in bodies if not {a.name for a in axes(b)} <= named]
    used = {a.name for a in axes(*bodies)} if bodies else set()
    outer, row = _classes({n: c for n, c in rows.items() if n in used}, rows["tp"])
    columns = cells.columns
    first = next(iter(columns.values()))
    inner, cell = _classes({n: c for n, c in columns.items() if n in used}, first)
    table = {n: c.reshape(-1, 1, 1) for n, c in outer.items()}
    table |= {n: c.reshape(1, -1, 1) for n, c in inner.items()}
    table |= {n: c.reshape(1, 1, -1) for n, c in choices.items()}
    shape = (int(row.max(initial=0)) + 1, int(cell.max(initial=0)) + 1, size)
    allowed = joint(bodies, table, shape)
    return merged(Flags(choices, row, cell, allowed))


def _classes(
    columns: Mapping[str, Array], like: Array
) -> tuple[dict[str, Array], Array]:
    """Return the distinct rows of some columns, and the number of each row's."""
    if not columns:
        return {}, np.zeros(len(like), np.int64)
    names = list(columns)
    stacked = np.stack([columns[n] for n in names], axis=1)
    distinct, number = np.unique(stacked, axis=0, return_inverse=True)
    found = {n: distinct[:, i] for i, n in enumerate(names)}
    return found, number.reshape(-1).astype(np.int64)


def merged(flags: Flags) -> Flags:
    """Join classes that are allowed the same, so that few are left."""
    _, first, row = np.unique(
        np.packbits(flags.allowed.reshape(len(flags.allowed), -1), axis=1),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    allowed = flags.allowed[first]
    across = np.moveaxis(allowed, 1, 0).reshape(allowed.shape[1], -1)
    _, first, cell = np.unique(
        np.packbits(across, axis=1), axis=0, return_index=True, return_inverse=True
    )
    return Flags(
        flags.choices,
        row.reshape(-1)[flags.rows],
        cell.reshape(-1)[flags.cells],
        allowed[:, first],
    )


def joint(
    bodies: Iterable[Expr], table: Mapping[str, Array], shape: tuple[int, ...]
) -> Mask:
    """Evaluate conditions together, those of one shape before any wider one."""
    evaluate = Evaluator(table)
    by_shape: dict[tuple[int, ...], Mask] = {}
    for body in bodies:
        holds = evaluate(body) != 0
        known = by_shape.get(holds.shape)
        by_shape[holds.shape] = holds if known is None else known & holds
    result = np.ones((1,) * len(shape), bool)
    for holds in sorted(by_shape.values(), key=lambda h: h.size):
        result = result & holds
    return np.broadcast_to(result, shape)
