"""The best configuration for every number of nodes, odd ones included."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..answer import Answer
from ..domains import NothingDividesError
from ..plan import plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...models.problem import Problem
    from ..space import Space

    Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a number of nodes can do.

    Attributes
    ----------
    problem
        Cluster and global batch that were chosen.
    answer
        The fastest configuration with its proof, None if nothing fits with any batch.
    """

    problem: Problem
    answer: Answer | None

    @property
    def tokens_per_s(self) -> float:
        """Tokens of all devices a second, 0 if nothing fits."""
        if self.answer is None:
            return 0.0
        speed = self.answer.answers[0].projection.tokens_per_s_per_gpu
        return speed * self.problem.cluster.world_size


def batches(batch: int, tolerance: float) -> range:
    """Return the global batches within a relative tolerance of one."""
    reach = int(batch * tolerance + 1e-9)
    return range(batch - reach, batch + reach + 1)


def book(
    problem: Problem,
    space: Space,
    nodes: Sequence[int],
    tolerance: float = 0.0,
    progress: Progress | None = None,
) -> Iterator[Page]:
    """Yield the best configuration of each number of nodes.

    Parameters
    ----------
    problem, space
        What is asked; the cluster's own node count is replaced.
    nodes
        Node counts.
    tolerance
        How far the global batch may be from the problem's, relative. Of the batches
        within it the one with most tokens a second is taken, the nearest one of
        equals.
    progress
        Called with a text, what is done, and how much there is.
    """
    for done, count in enumerate(nodes, 1):
        cluster = replace(problem.cluster, nodes=count)
        pages = [
            _page(replace(problem, cluster=cluster), space, size)
            for size in batches(problem.training.global_batch, tolerance)
        ]
        yield max(
            pages,
            key=lambda p: (
                p.tokens_per_s,
                -abs(p.problem.training.global_batch - problem.training.global_batch),
            ),
        )
        if progress:
            progress("node counts", done, len(nodes))


def _page(problem: Problem, space: Space, size: int) -> Page:
    asked = replace(problem, training=replace(problem.training, global_batch=size))
    try:
        found = plan(asked, space, top=1)
    except NothingDividesError:
        return Page(problem=asked, answer=None)
    return Page(problem=asked, answer=found if isinstance(found, Answer) else None)
