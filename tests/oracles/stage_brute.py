"""Every stage plan of a small skeleton, timed by simulating it: the plain optimum.

Written from the page on stages: cut the layers anywhere, no chunk between the ends
empty; give every layer any level; keep what fits on every rank; take the fastest.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise, product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardproof.solver.stages import Skeleton


def cuts(layers: int, chunks: int) -> Iterator[tuple[int, ...]]:
    """Yield the number of layers of every chunk."""
    if chunks == 1:
        yield (layers,)
        return
    for bounds in combinations_with_replacement(range(layers + 1), chunks - 1):
        sizes = tuple(np.diff([0, *bounds, layers]).tolist())
        if all(sizes[1:-1]):
            yield sizes


def levels(at: Skeleton, kinds: list[int]) -> Iterator[list[int]]:
    """Yield how many layers of a chunk are at each level."""
    choices = []
    for kind in sorted(set(kinds)):
        own = [i for i, item in enumerate(at.items) if item.kind == kind]
        choices.append(list(combinations_with_replacement(own, kinds.count(kind))))
    for picked in product(*choices):
        counts = [0] * len(at.items)
        for group in picked:
            for i in group:
                counts[i] += 1
        yield counts


def fastest(at: Skeleton) -> float | None:
    """Return the least simulated step time, None if nothing fits."""
    arch, pp, vpp = at.problem.architecture, at.layout.pp, at.layout.vpp
    best = None
    for sizes in cuts(arch.num_layers, pp * vpp):
        ends = np.cumsum([0, *sizes])
        held = [list(arch.kind_of_layer[a:b]) for a, b in pairwise(ends)]
        held[-1] += [len(arch.kinds)] * arch.mtp_layers
        per_rank = []
        for rank in range(pp):
            own = [list(levels(at, held[c])) for c in range(rank, pp * vpp, pp)]
            rows = [r for r in product(*own) if at.memory.peak(rank, r) <= at.limit]
            per_rank.append(rows)
        if not all(per_rank):
            continue
        plans = np.array(list(product(*per_rank)), np.int64)
        ends_of = np.zeros((*plans.shape[:3], 2), np.int64)
        ends_of[:, 0, 0, 0] = ends_of[:, -1, -1, 1] = 1
        plans = np.concatenate([plans, ends_of], axis=3)
        for start in range(0, len(plans), 4096):
            found = float(at.times.of(plans[start : start + 4096]).min())
            best = found if best is None else min(best, found)
    return best
