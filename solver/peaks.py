"""Peak bytes of every pipeline rank, by pipeline shape."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..models.expr import Evaluator, as_expr, at_most, maximum
from ..models.layout import SCHEDULES, SPLITS
from ..models.memory import MemoryModel
from ..models.memory.kernels import kernels_on
from ..models.pipeline.inflight import in_flight, saturation
from ..models.stages import Chunk, stages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..models.expr import Array, Expr
    from ..models.stages import Stage
    from .domains import Domains
    from .vector import Points

Held = tuple[tuple[int, ...], ...]
Rank = tuple["Stage", Held]
#: The peak of a shape with more chunks than layers: more than any device has.
NO_MEMORY = 2**61
_1F1B = SCHEDULES.index("1f1b")
_INTERLEAVED = SCHEDULES.index("interleaved")
_KEY = ("schedule", "pp", "vpp", "split")


class Peaks:
    """The memory of a problem's configurations.

    Parameters
    ----------
    domains
        The problem over its space.
    """

    def __init__(self, domains: Domains) -> None:
        """Take the problem; components are built when first needed."""
        self._domains = domains
        self._shapes: dict[tuple[int, ...], tuple[Expr, ...]] = {}
        self._ranks: dict[Rank, Expr] = {}

    @cached_property
    def model(self) -> MemoryModel:
        """Bytes as expressions of the axes."""
        problem = self._domains.problem
        return MemoryModel(
            problem.architecture,
            problem.training,
            self._domains.dims,
            kernels_on(problem.cluster.device),
        )

    @property
    def limit(self) -> int:
        """What a process can use on the device, in bytes."""
        return self._domains.problem.cluster.device.hbm_bytes

    def key(self, shape: dict[str, int]) -> tuple[int, ...]:
        """Name a shape so that shapes with equal memory share the name.

        A shape that breaks pipeline rules, of which only explanations ask, is
        measured as its nearest legal one; it has no name, and no memory, if there
        are more chunks than layers.
        """
        pp, vpp = shape["pp"], shape["vpp"] if shape["pp"] > 1 else 1
        schedule = _INTERLEAVED if vpp > 1 else _1F1B
        enough = saturation(SCHEDULES[schedule], pp, vpp)
        m = shape["m"] if vpp == 1 else -(-shape["m"] // pp) * pp
        arch = self._domains.problem.architecture
        for split in dict.fromkeys((shape["split"], *range(len(SPLITS)))):
            if stages(arch, split, pp, vpp):
                return schedule, pp, vpp, split, min(m, enough)
        return ()

    def ranks(self, key: tuple[int, ...]) -> tuple[Rank, ...]:
        """Return for each rank its chunks and what the schedule holds on it."""
        schedule, pp, vpp, split, m = key
        held = in_flight(SCHEDULES[schedule], pp, vpp, m)
        on = stages(self._domains.problem.architecture, split, pp, vpp)
        return tuple(zip(on, held, strict=True))

    def worst(self, key: tuple[int, ...]) -> tuple[Expr, ...]:
        """Return the peaks of the ranks that no other rank exceeds everywhere."""
        if not key:
            return (as_expr(NO_MEMORY),)
        if key not in self._shapes:
            kept = undominated(self.ranks(key))
            self._shapes[key] = tuple(self.peak(rank) for rank in kept)
        return self._shapes[key]

    def peak(self, rank: Rank) -> Expr:
        """Return the peak bytes of one rank."""
        if rank not in self._ranks:
            self._ranks[rank] = self.model.rank_peak(*rank)
        return self._ranks[rank]

    def fits(self, shape: dict[str, int]) -> tuple[Expr, ...]:
        """Return the conditions under which a shape's ranks fit on the device."""
        return self.conditions(self.key(shape))

    def conditions(self, key: tuple[int, ...]) -> tuple[Expr, ...]:
        """Return the conditions under which the ranks of a key fit on the device."""
        return tuple(at_most(p, self.limit) for p in self.worst(key))

    def groups(self, rows: Mapping[str, Array]) -> tuple[Array, list[tuple[int, ...]]]:
        """Return for each row the number of its key, shape [n], and the keys."""
        return _numbered(rows, self.key)

    def of_points(
        self,
        points: Points,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Array:
        """Return the peak over ranks of every point, shape of ``legal``, bytes."""
        grid = points.grid()
        rows = {k: grid[k] for k in points.skeletons}
        inner = {k: grid[k] for k in points.inner}
        return self._evaluate(rows, inner, points.legal.shape, progress)

    def of_columns(self, columns: Mapping[str, Array]) -> Array:
        """Return the peak over ranks of every row, shape [n], in bytes."""
        return self._evaluate(columns, {}, (len(columns["pp"]),), None)

    def _evaluate(
        self,
        rows: Mapping[str, Array],
        inner: Mapping[str, Array],
        size: tuple[int, ...],
        progress: Callable[[str, int, int], None] | None,
    ) -> Array:
        """Evaluate the worst ranks of each pipeline shape on its own rows."""
        order, starts, keys = _group(rows, self.key)
        rows = {k: v[order] for k, v in rows.items()}
        sorted_peaks = np.zeros(size, np.int64)
        for i, key in enumerate(keys):
            part = slice(starts[i], starts[i + 1])
            columns = {**{k: v[part] for k, v in rows.items()}, **inner}
            worst = maximum(*self.worst(key))
            sorted_peaks[part] = Evaluator(columns)(worst)
            if progress:
                progress("memory of pipeline shapes", i + 1, len(keys))
        result = np.empty_like(sorted_peaks)
        result[order] = sorted_peaks
        return result


def _numbered(
    rows: Mapping[str, Array], key: Callable[[dict[str, int]], tuple[int, ...]]
) -> tuple[Array, list[tuple[int, ...]]]:
    """Number rows by pipeline shape: the number of each row's key, and the keys."""
    names = (*_KEY, "m")
    columns = [rows[n].ravel() for n in names]
    sizes = [int(c.max(initial=0)) + 1 for c in columns]
    _, first, inverse = np.unique(
        np.ravel_multi_index(columns, sizes), return_index=True, return_inverse=True
    )
    shapes = zip(*(c[first].tolist() for c in columns), strict=True)
    keys = [key(dict(zip(names, shape, strict=True))) for shape in shapes]
    distinct = sorted(set(keys))
    number = {k: i for i, k in enumerate(distinct)}
    return np.asarray([number[k] for k in keys], np.int64)[inverse], distinct


def _group(
    rows: Mapping[str, Array], key: Callable[[dict[str, int]], tuple[int, ...]]
) -> tuple[Array, list[int], list[tuple[int, ...]]]:
    """Sort rows by pipeline shape: order, start of each group, its key."""
    group, distinct = _numbered(rows, key)
    order = np.argsort(group, kind="stable")
    counts = np.bincount(group, minlength=len(distinct))
    starts = [0, *np.cumsum(counts).tolist()]
    return order, starts, distinct


def undominated(ranks: tuple[Rank, ...]) -> tuple[Rank, ...]:
    """Drop every rank that holds no more of anything than another one.

    Bytes never fall when a rank gets a layer, a part, or a micro-batch more, so
    a dropped rank cannot be the worst.
    """
    kept: list[Rank] = []
    for rank in dict.fromkeys(ranks):
        if any(_within(rank, other) for other in kept):
            continue
        kept = [other for other in kept if not _within(other, rank)]
        kept.append(rank)
    return tuple(kept)


def _within(small: Rank, large: Rank) -> bool:
    """Whether chunk by chunk ``small`` holds at most what ``large`` holds."""
    chunks = zip(small[0], large[0], strict=True)
    if not all(_chunk_within(a, b) for a, b in chunks):
        return False
    return all(
        any(all(x <= y for x, y in zip(v, w, strict=True)) for w in large[1])
        for v in small[1]
    )


def _chunk_within(small: Chunk, large: Chunk) -> bool:
    return (
        all(x <= y for x, y in zip(small.layers, large.layers, strict=True))
        and small.mtp <= large.mtp
        and small.embedding <= large.embedding
        and small.head <= large.head
    )
