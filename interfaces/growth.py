"""How many nodes would be enough, where memory is what is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..models.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..models.problem import Problem
    from ..solver.space import Space

#: Larger clusters than this are not tried, in devices.
MOST_DEVICES = 4096


def enough_nodes(
    problem: Problem,
    space: Space,
    progress: Callable[[str, int, int], None] | None = None,
) -> int | None:
    """Double the nodes until something fits.

    Half the number that is returned was enumerated too, and nothing fitted.

    Parameters
    ----------
    problem, space
        What was asked and is infeasible.
    progress
        Called with a text, what is done, and how much there is.

    Returns
    -------
    int or None
        Nodes that are enough; None if no number was found up to ``MOST_DEVICES``, or
        if the batch does not divide over more devices.
    """
    from ..solver.feasible import enumerate_feasible

    cluster = problem.cluster
    sizes = []
    while cluster.world_size * 2 <= MOST_DEVICES:
        cluster = replace(cluster, nodes=cluster.nodes * 2)
        sizes.append(cluster)
    for done, larger in enumerate(sizes):
        if progress:
            progress("larger clusters", done, len(sizes))
        try:
            found = enumerate_feasible(replace(problem, cluster=larger), space)
        except InputError:
            return None
        if found.count:
            return larger.nodes
    return None
