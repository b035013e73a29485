"""Violation masks: which sets of rules the raw points of a space break.

Over a space, a *correction* is a minimal set of rules without which some point
is feasible, and a *conflict* a minimal set of rules that no point keeps at once.
The minimal masks are the corrections; their minimal hitting sets the conflicts.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..models.expr import Evaluator
from ..models.layout import DECIDED
from .domains import INNER, Domains
from .vector import derived, derived_equalities, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..models.expr import Array, Expr

Masks = npt.NDArray[np.uint64]
_SKELETON = tuple(n for n in DECIDED if n not in INNER)
_BLOCK = ("pp", "vpp", "schedule", "split")
_WHOLE = "whole"


def raw_blocks(domains: Domains) -> Iterator[dict[str, Array]]:
    """Yield the raw product of the skeleton axes in blocks, with derived axes.

    Points whose degrees do not multiply to the devices and the batch are no
    configurations of this cluster, so they are left out, unless there are no
    others; then derived axes are rounded down, and are at least 1.
    """
    whole = any(len(_whole(table)["pp"]) for table in _product(domains))
    for table in _product(domains):
        kept = _whole(table) if whole else table
        yield {n: c for n, c in kept.items() if n != _WHOLE}


def _product(domains: Domains) -> Iterator[dict[str, Array]]:
    rest = [n for n in _SKELETON if n not in _BLOCK]
    combinations = list(product(*(domains.values[n] for n in rest)))
    grid = np.asarray(combinations, np.int64).reshape(-1, len(rest))
    equations = derived_equalities(domains)
    for outer in product(*(domains.values[n] for n in _BLOCK)):
        table = {n: grid[:, i] for i, n in enumerate(rest)}
        for name, code in zip(_BLOCK, outer, strict=True):
            table[name] = np.full(len(grid), code, np.int64)
        for name in ("dp", "edp", "m"):
            table[name] = np.maximum(derived(name, domains, table), 1)
        evaluate, fits = Evaluator(table), np.ones(len(grid), np.int64)
        for equation in equations:
            fits = fits * evaluate(equation)
        yield table | {_WHOLE: fits}


def _whole(table: dict[str, Array]) -> dict[str, Array]:
    keep = table[_WHOLE] != 0
    return {n: c[keep] for n, c in table.items()}


def violations(
    bodies: list[Expr], table: Mapping[str, Array], inner: Mapping[str, Array]
) -> Masks:
    """Return for every point of a block the bits of the rules it breaks."""
    evaluate = Evaluator(spread(table, inner))
    result = np.zeros((1,) * (1 + len(inner)), np.uint64)
    for bit, body in enumerate(bodies):
        broken = (evaluate(body) == 0).astype(np.uint64) << np.uint64(bit)
        result = result | broken
    return result


def inner_grid(domains: Domains) -> dict[str, Array]:
    """Return the inner axes, all values."""
    return {n: np.asarray(domains.values[n], np.int64) for n in INNER}


def varying(domains: Domains) -> list[tuple[str, Expr]]:
    """Return the rules that some point breaks, by id."""
    found = [(r.id, b) for r, b in domains.rules if b.constant is None or not b.lo]
    if len(found) > 62:
        raise AssertionError("a mask holds at most 62 rules and memory")
    return found


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
