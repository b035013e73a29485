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
from .vector import Points

if TYPE_CHECKING:
    from .domains import Domains
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
    names = [*(name for name, _ in varying(domains)), MEMORY]
    corrections = tuple(
        Correction(
            rules=_names(mask, names),
            missing_bytes=missing,
            witness=Layout.from_point(point),
        )
        for mask, missing, point in _least(domains)
    )
    masks = [_mask(c.rules, names) for c in corrections]
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


def _mask(rules: tuple[str, ...], names: list[str]) -> int:
    return sum(1 << names.index(name) for name in rules)


def _least(domains: Domains) -> list[tuple[int, int, dict[str, int]]]:
    """Return each minimal mask with the fewest bytes missing and a point of it."""
    rules, inner, memory = varying(domains), inner_grid(domains), Peaks(domains)
    blocks = [t for t in raw_blocks(domains) if len(t["pp"])]
    table = {n: np.concatenate([b[n] for b in blocks]) for n in blocks[0]}
    shape = (len(table["pp"]), *(len(codes) for codes in inner.values()))
    points = Points(skeletons=table, inner=inner, legal=np.ones(shape, bool))
    missing = memory.of_points(points) - memory.limit
    masks = violations([body for _, body in rules], table, inner)
    masks = masks | (missing > 0).astype(np.uint64) << np.uint64(len(rules))
    found = []
    for mask in minimal(int(m) for m in np.unique(masks)):
        own = np.where(masks == np.uint64(mask), missing, np.iinfo(np.int64).max)
        at = np.zeros(shape, bool)
        at.flat[int(np.argmin(own))] = True
        point = {n: int(c[0]) for n, c in points.columns(at).items()}
        found.append((mask, max(int(missing[at][0]), 0), point))
    return found
