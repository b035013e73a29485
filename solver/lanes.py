"""The fast lane of enumeration: skeletons by cells, in blocks of bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..models.expr import axes
from .feasible_set import configurations, in_order, with_choices
from .inner import Cells, Flags, flags_of, joint
from .vector import skeletons

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..models.expr import Array, Expr
    from .domains import Domains
    from .feasible_set import Bits
    from .peaks import Peaks

    Progress = Callable[[str, int, int], None]

#: Points that are evaluated at a time.
_BLOCK = 1 << 22


def enumerate_arrays(
    domains: Domains, memory: Peaks | None, progress: Progress | None = None
) -> tuple[dict[str, Array], Cells, Bits, Flags, int]:
    """Return skeletons, cells, bits, flags, and how many configurations are legal.

    Parameters
    ----------
    domains
        The problem over its space.
    memory
        What each configuration needs; None counts rules only.
    progress
        Called with a text, what is done, and how much there is.
    """
    rows, waiting = skeletons(domains)
    cells = Cells.of(domains)
    named = set(domains.flags)
    rules = [b for b in waiting if not {a.name for a in axes(b)} & named]
    rules = [b for b in rules if not _of_one_block(b, cells)]
    bits = legal_bits(rows, cells, rules)
    flags = flags_of(domains, rows, cells)
    bits = with_choices(bits, flags)
    legal = int(configurations(bits, flags).sum())
    if memory is not None:
        keep = np.flatnonzero(bits.any(axis=1))
        rows, bits = {n: c[keep] for n, c in rows.items()}, bits[keep]
        flags = flags.kept(keep)
        bits &= fitting_bits(rows, cells, memory, progress)
    named_rows = {n: rows[n] for n in domains.skeleton}
    return (*_ordered(named_rows, cells, bits, flags), legal)


def _ordered(
    rows: dict[str, Array], cells: Cells, bits: Bits, flags: Flags
) -> tuple[dict[str, Array], Cells, Bits, Flags]:
    rows, bits, flags = in_order(rows, bits, flags)
    return rows, cells, bits, flags


def _of_one_block(body: Expr, cells: Cells) -> bool:
    """Whether cells were built by this rule already."""
    names = {a.name for a in axes(body)}
    return any(names and names <= set(block) for block in cells.blocks)


def legal_bits(rows: Mapping[str, Array], cells: Cells, rules: list[Expr]) -> Bits:
    """Return which cells of each skeleton break no rule, packed."""
    count = len(rows["tp"])
    bits = np.zeros((count, -(-cells.count // 8)), np.uint8)
    step = max(_BLOCK // max(cells.count, 1), 1)
    for start in range(0, count, step):
        part = {n: c[start : start + step] for n, c in rows.items()}
        shape = (len(part["tp"]), *cells.shape)
        holds = joint(rules, cells.grid(part), shape)
        bits[start : start + step] = np.packbits(holds.reshape(shape[0], -1), axis=1)
    return bits


def fitting_bits(
    rows: Mapping[str, Array],
    cells: Cells,
    memory: Peaks,
    progress: Progress | None,
) -> Bits:
    """Return which cells of each skeleton fit on the device, packed.

    Skeletons that differ only in what memory does not see, such as the number of
    micro-batches once the pipeline is full, are evaluated once.
    """
    group, keys = memory.groups(rows)
    seen = {n: c for n, c in rows.items() if n not in ("m", "gbs")}
    stacked = np.stack([group, *seen.values()], axis=1)
    _, first, number = np.unique(
        stacked, axis=0, return_index=True, return_inverse=True
    )
    bits = np.zeros((len(first), -(-cells.count // 8)), np.uint8)
    # Distinct rows are sorted by group, so that each group is one slice.
    starts = np.searchsorted(group[first], np.arange(len(keys) + 1))
    step = max(_BLOCK // max(cells.count, 1), 1)
    for i, key in enumerate(keys):
        fits = memory.conditions(key)
        for start in range(starts[i], starts[i + 1], step):
            stop = min(start + step, starts[i + 1])
            part = {n: c[first[start:stop]] for n, c in rows.items()}
            shape = (stop - start, *cells.shape)
            holds = joint(fits, cells.grid(part), shape)
            bits[start:stop] = np.packbits(holds.reshape(shape[0], -1), axis=1)
        if progress:
            progress("memory of pipeline shapes", i + 1, len(keys))
    return bits[number.reshape(-1)]
