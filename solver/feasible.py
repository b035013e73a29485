"""Complete enumeration of a space, by arrays, by CP-SAT, or by both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .domains import Domains, bind
from .feasible_set import NAMES as NAMES
from .feasible_set import Engine as Engine
from .feasible_set import FeasibleSet as FeasibleSet
from .feasible_set import folded, in_order
from .inner import Cells, Flags, combinations
from .lanes import enumerate_arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..models.problem import Problem
    from .peaks import Peaks
    from .space import Space

    Progress = Callable[[str, int, int], None]


class EnginesDisagreeError(RuntimeError):
    """The two engines found different sets: a defect, never a property of input."""


def enumerate_feasible(
    problem: Problem,
    space: Space,
    *,
    engine: Engine = "vector",
    rules_only: bool = False,
    progress: Progress | None = None,
) -> FeasibleSet:
    """Return the complete feasible set of a problem over a space.

    Parameters
    ----------
    problem, space
        What is asked, and over which axes.
    engine
        ``vector`` for arrays, ``cpsat`` for the model of record, ``both`` to find
        the set twice and compare.
    rules_only
        Leave memory out.
    progress
        Called with a text, what is done, and how much there is.

    Raises
    ------
    InputError
        If a pin lies outside its axis or no ``mbs * dp`` divides the batch.
    EnginesDisagreeError
        If the engines find different sets.
    IncompleteError
        If CP-SAT could not finish.
    """
    domains = bind(problem, space)
    if engine == "cpsat":
        return _by_cpsat(domains, engine, rules_only, progress)
    by_vector = _by_vector(domains, engine, rules_only, progress)
    if engine == "both":
        by_cpsat = _by_cpsat(domains, engine, rules_only, progress)
        if by_vector.content_hash != by_cpsat.content_hash:
            raise EnginesDisagreeError(
                f"CP-SAT finds {by_cpsat.count:,} configurations and the arrays "
                f"{by_vector.count:,}, or others: please report this problem"
            )
    return by_vector


def _by_vector(
    domains: Domains, engine: Engine, rules_only: bool, progress: Progress | None
) -> FeasibleSet:
    memory = None if rules_only else _memory(domains)
    rows, cells, bits, flags, legal = enumerate_arrays(domains, memory, progress)
    return FeasibleSet(
        problem=domains.problem,
        space=domains.space,
        skeletons=rows,
        cells=cells,
        bits=bits,
        flags=flags,
        legal_count=legal,
        engine=engine,
        rules_only=rules_only,
    )


def _by_cpsat(
    domains: Domains, engine: Engine, rules_only: bool, progress: Progress | None
) -> FeasibleSet:
    from .cpsat.enumerate import enumerate_cpsat

    fits = None if rules_only else _memory(domains).fits
    found = enumerate_cpsat(domains, fits, progress)
    cells = Cells.of(domains)
    size = len(found["tp"])
    legal = size if rules_only else enumerate_arrays(domains, None)[-1]
    choices = combinations(domains, domains.flags)
    one = np.ones((1, 1, len(next(iter(choices.values()))) if choices else 1), bool)
    none = np.zeros(0, np.int64)
    flags = Flags(choices, none, none, one)
    skeletons, bits, flags = in_order(*folded(found, domains.skeleton, cells, flags))
    return FeasibleSet(
        problem=domains.problem,
        space=domains.space,
        skeletons=skeletons,
        cells=cells,
        bits=bits,
        flags=flags,
        legal_count=legal,
        engine=engine,
        rules_only=rules_only,
    )


def _memory(domains: Domains) -> Peaks:
    from .peaks import Peaks

    return Peaks(domains)
