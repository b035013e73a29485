"""Why nothing is feasible: every minimal conflict and every minimal correction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..models.layout import DECIDED, Layout, axis_label
from .answer import Clash, Correction, Infeasible
from .masks import (
    hitting_sets,
    inner_grid,
    minimal,
    raw_blocks,
    varying,
    violations,
)
from .peaks import Peaks
from .rules import Facts
from .single import memory_clash, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..models.expr import Array
    from .domains import Domains
    from .masks import Masks
    from .rules import Rule

MEMORY = "memory"


def explain(domains: Domains, legal_count: int = 0) -> Infeasible:
    """Find why a space has no feasible point.

    Every raw point is looked at: the rules it breaks, and, unless another point
    breaks fewer, whether it fits. A point whose split has no member is measured
    with the first family that has one.

    Parameters
    ----------
    domains
        The problem over its space.
    legal_count
        Configurations that the rules allow, for the record.
    """
    search = _Search(domains)
    search.run()
    names = [*(name for name, _ in search.rules), MEMORY]
    masks = minimal(search.best)
    corrections = tuple(
        Correction(
            rules=_names(mask, names),
            missing_bytes=search.best[mask][0],
            witness=Layout.from_point(search.best[mask][1]),
        )
        for mask in masks
    )
    conflicts = tuple(_names(h, names) for h in hitting_sets(masks) if h)
    by_memory = next((c for c in corrections if c.rules == (MEMORY,)), None)
    return Infeasible(
        problem=domains.problem,
        clashes=_clashes(domains, conflicts, corrections),
        conflicts=conflicts,
        corrections=corrections,
        missing_bytes=by_memory.missing_bytes if by_memory else None,
        nearest=by_memory.witness if by_memory else None,
        space=domains.space.label,
        legal_count=legal_count,
    )


def _clashes(
    domains: Domains,
    conflicts: tuple[tuple[str, ...], ...],
    corrections: tuple[Correction, ...],
) -> tuple[Clash, ...]:
    """Write the smallest conflict in words."""
    if not conflicts:
        return ()
    facts = Facts(problem=domains.problem, dims=domains.dims)
    by_id = {rule.id: rule for rule, _ in domains.rules}
    return tuple(
        _in_space(by_id[name], facts, domains)
        if name in by_id
        else _memory(domains, corrections)
        for name in conflicts[0]
    )


def _memory(domains: Domains, corrections: tuple[Correction, ...]) -> Clash:
    """Say by how much the least demanding point with the fewest breaks is over."""
    nearest = min(
        (c for c in corrections if MEMORY in c.rules),
        key=lambda c: (len(c.rules), c.missing_bytes),
    )
    limit = domains.problem.cluster.device.hbm_bytes
    return memory_clash(limit + nearest.missing_bytes, nearest.witness, limit)


def _in_space(rule: Rule, facts: Facts, domains: Domains) -> Clash:
    """Fill a rule's sentence with constants and the values the axes can take."""
    sentence = rule.sentence.format(**facts.constants)
    shown = [
        f"{n} in {{{_values(n, domains.values[n])}}}"
        for n in DECIDED
        if n in words(sentence)
    ]
    if shown:
        sentence = f"{sentence}; here {', '.join(shown)}"
    return Clash(rule=rule.id, sentence=sentence)


def _values(name: str, codes: tuple[int, ...]) -> str:
    shown = ", ".join(axis_label(name, c) for c in codes[:6])
    return shown + (", ..." if len(codes) > 6 else "")


def _names(mask: int, names: list[str]) -> tuple[str, ...]:
    return tuple(name for i, name in enumerate(names) if mask >> i & 1)


class _Search:
    """The best point found for each mask; ``best[mask]`` is (bytes missing, point)."""

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self.rules = varying(domains)
        self.memory = Peaks(domains)
        self.inner = inner_grid(domains)
        self.best: dict[int, tuple[int, dict[str, int]]] = {}

    def run(self) -> None:
        """Collect masks of all blocks, then settle memory from small to large."""
        blocks: dict[int, list[tuple[Mapping[str, Array], Masks]]] = {}
        for table, masks in self._blocks():
            for mask in np.unique(masks):
                blocks.setdefault(int(mask), []).append((table, masks))
        memory_bit = 1 << len(self.rules)
        for mask in sorted(blocks, key=lambda m: (m.bit_count(), m)):
            if any(mask & done == done for done in self.best):
                continue
            for table, masks in blocks[mask]:
                self._settle(mask, memory_bit, table, masks)

    def _blocks(self) -> Iterator[tuple[Mapping[str, Array], Masks]]:
        bodies = [body for _, body in self.rules]
        shape = tuple(len(codes) for codes in self.inner.values())
        for table in raw_blocks(self.domains):
            masks = violations(bodies, table, self.inner)
            yield table, np.broadcast_to(masks, (len(table["pp"]), *shape))

    def _settle(
        self, mask: int, bit: int, table: Mapping[str, Array], masks: Masks
    ) -> None:
        """Measure the points of one mask and keep the one that misses least."""
        rows, *cells = np.nonzero(masks == np.uint64(mask))
        columns = {n: c[rows] for n, c in table.items()}
        pairs = zip(self.inner.items(), cells, strict=True)
        columns |= {n: codes[cell] for (n, codes), cell in pairs}
        missing = self.memory.of_columns(columns) - self.memory.limit
        at = int(np.argmin(missing))
        lacking = max(int(missing[at]), 0)
        key = mask | bit if lacking else mask
        if key not in self.best or lacking < self.best[key][0]:
            point = {n: int(c[at]) for n, c in columns.items()}
            self.best[key] = (lacking, point)
