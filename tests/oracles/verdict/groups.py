"""A world of processes that is not there: torch's fake process group."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from megatron.core import parallel_state
from torch.testing._internal.distributed.fake_pg import FakeStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class _Bare:
    """A group of a rank that only has its groups set up."""

    def __init__(self, ranks: Sequence[int]) -> None:
        self._ranks = ranks

    def size(self) -> int:
        return len(self._ranks)

    def rank(self) -> int:
        return list(self._ranks).index(dist.get_rank())


def install() -> None:
    """Make no group that this rank is not in: torch would give it none either.

    Groups of ranks other than the first are bare, since nothing is built there; the
    lists of ranks are remembered, which are the same for every rank.
    """
    make, listed = (
        parallel_state.create_group,
        parallel_state.generate_masked_orthogonal_rank_groups,
    )

    def create(ranks: Any = None, *args: Any, **kwargs: Any) -> Any:
        if dist.get_rank() not in ranks:
            return dist.GroupMember.NON_GROUP_MEMBER
        return _Bare(ranks) if dist.get_rank() else make(ranks, *args, **kwargs)

    @lru_cache(maxsize=2048)
    def remembered(world: int, sizes: tuple[int, ...], mask: tuple[bool, ...]) -> Any:
        return listed(world, list(sizes), list(mask))

    parallel_state.create_group = create
    parallel_state.generate_masked_orthogonal_rank_groups = lambda world, sizes, mask: (
        remembered(world, tuple(sizes), tuple(mask))
    )


def leave() -> None:
    """Forget the groups and the world."""
    if dist.is_initialized():
        parallel_state.destroy_model_parallel()
        dist.destroy_process_group()
    # The first two survive ``destroy_model_parallel`` where set-up broke off.
    parallel_state.set_virtual_pipeline_model_parallel_world_size(None)
    parallel_state.set_pipeline_model_parallel_rank(None)


def enter(world: int, rank: int, groups: Mapping[str, Any]) -> None:
    """Be one rank of a world and set its groups up, or raise what is raised."""
    leave()
    hook = sys.excepthook  # torch wraps it anew for every world
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    sys.excepthook = hook
    parallel_state.initialize_model_parallel(**groups)


def ranks_that_matter(world: int) -> tuple[int, ...]:
    """Return the ranks whose groups are set up: the first and the last."""
    return (0,) if world == 1 else (world - 1, 0)
