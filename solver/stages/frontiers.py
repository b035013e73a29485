"""Undominated sums of kept bytes and time, from layers to chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from .skeleton import Skeleton

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

#: Layers of each kind of a chunk, predictions last.
Content = tuple[int, ...]
#: Points of a frontier above which its neighbours are joined for bounds.
_MOST_POINTS = 192


@dataclass(frozen=True, eq=False)
class Frontier:
    """Undominated sums: bytes ascending, times descending.

    Attributes
    ----------
    kept, time
        Shape [n], in bytes of one micro-batch and seconds.
    item, before
        The item that was added last, and the point it was added to, shape [n].
    """

    kept: Ints
    time: Floats
    item: Ints
    before: Ints


def _one(dtype: type) -> npt.NDArray[np.generic]:
    return np.zeros(1, dtype)


NOTHING = Frontier(_one(np.int64), _one(np.float64), _one(np.int64), _one(np.int64))  # type: ignore[arg-type]


def undominated(kept: Ints, time: Floats) -> Ints:
    """Return the points that no other equals or beats in both, by kept bytes."""
    order = np.lexsort((time, kept))
    ranked = time[order]
    keep = np.ones(len(order), bool)
    keep[1:] = ranked[1:] < np.minimum.accumulate(ranked)[:-1]
    found: Ints = order[keep]
    return found


def added(
    first: tuple[Ints, Floats], second: tuple[Ints, Floats]
) -> tuple[Ints, Floats]:
    """Return the frontier of all sums of two, joined to few points from below.

    Joined points have the least bytes and the least time of theirs, so that what
    they give stays a bound.
    """
    kept = (first[0][:, None] + second[0]).ravel()
    time = (first[1][:, None] + second[1]).ravel()
    keep = undominated(kept, time)
    kept, time = kept[keep], time[keep]
    if len(kept) > _MOST_POINTS:
        cut = np.linspace(0, len(kept), _MOST_POINTS + 1).astype(np.int64)
        kept, time = kept[cut[:-1]], time[cut[1:] - 1]
    return kept, time


class Frontiers:
    """The frontiers of a skeleton's chunks, by content and largest moment.

    Parameters
    ----------
    skeleton
        What is cut.
    """

    def __init__(self, skeleton: Skeleton) -> None:
        """Keep what chunks share."""
        self._at = skeleton
        self._known: dict[tuple[Content, int], Frontier] = {}

    def of(self, content: Content, moment: int) -> Frontier:
        """Return the frontier of a chunk whose items have no larger moment."""
        key = content, moment
        if key not in self._known:
            kind = last_kind(content)
            if kind is None:
                return NOTHING
            self._known[key] = self._grown(fewer(content, kind), kind, moment)
        return self._known[key]

    def _grown(self, content: Content, kind: int, moment: int) -> Frontier:
        before, items = self.of(content, moment), self._at.items
        own = np.array(
            [i for i in self._at.levels[kind] if items[i].moment <= moment], np.int64
        )
        kept = np.array([items[i].kept for i in own], np.int64)
        kepts = (before.kept[:, None] + kept).ravel()
        times = (before.time[:, None] + self._at.times.backward[own]).ravel()
        keep = undominated(kepts, times)
        place, last = np.divmod(keep, max(len(own), 1))
        return Frontier(kepts[keep], times[keep], own[last], place)

    def trace(self, content: Content, moment: int, place: int) -> tuple[int, ...]:
        """Return how many there are of each item in a point of a frontier."""
        counts = [0] * len(self._at.items)
        while (kind := last_kind(content)) is not None:
            front = self.of(content, moment)
            counts[int(front.item[place])] += 1
            place = int(front.before[place])
            content = fewer(content, kind)
        return tuple(counts)


def last_kind(content: Content) -> int | None:
    """Return the last kind that a content has a layer of."""
    return max((k for k, n in enumerate(content) if n), default=None)


def fewer(content: Content, kind: int) -> Content:
    """Take one layer of a kind away."""
    return tuple(n - (k == kind) for k, n in enumerate(content))
