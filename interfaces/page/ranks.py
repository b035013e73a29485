"""A rank's ledger in a few groups that a figure can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...solver.peaks import Peaks
from ...solver.single import domains_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...models.layout import Layout
    from ...models.memory import Item
    from ...models.problem import Problem

#: Groups shown; what is smaller than the others is summed.
MOST = 8


def groups(
    problem: Problem, layout: Layout, numbers: Sequence[int]
) -> list[dict[str, int]]:
    """Return for some pipeline ranks the bytes alive at their peak, by group."""
    memory = Peaks(domains_of(problem, layout))
    point = layout.point()
    on = memory.ranks(memory.key(point))
    ranks = [_summed(memory.model.ledger_at(*on[number], point)) for number in numbers]
    largest: dict[str, int] = {}
    for rank in ranks:
        for group, size in rank.items():
            largest[group] = max(largest.get(group, 0), size)
    kept = sorted(largest, key=lambda g: -largest[g])[:MOST]
    return [_folded(rank, kept) for rank in ranks]


def _summed(items: Sequence[tuple[Item, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for item, size in items:
        group = _group(item)
        found[group] = found.get(group, 0) + size
    return found


def _group(item: Item) -> str:
    """Name state by its item, activations by the component that keeps them."""
    if item.phase in ("state", "constant"):
        return item.name
    component = item.name.partition(":")[0]
    return f"{component}, {'activations' if item.phase == 'kept' else 'at the peak'}"


def _folded(rank: dict[str, int], kept: Sequence[str]) -> dict[str, int]:
    found = {group: rank[group] for group in kept if rank.get(group)}
    rest = sum(size for group, size in rank.items() if group not in kept)
    return found | ({"everything else": rest} if rest else {})
