"""Complete enumeration of a space, by arrays, by CP-SAT, or by both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .domains import INNER, Domains, bind
from .feasible_set import NAMES as NAMES
from .feasible_set import Engine as Engine
from .feasible_set import FeasibleSet as FeasibleSet
from .feasible_set import fold, fold_rows
from .vector import legal_points

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..models.problem import Problem
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
    points = legal_points(domains)
    mask = points.legal
    if not rules_only:
        from .peaks import Peaks

        memory = Peaks(domains)
        mask = mask & (memory.of_points(points, progress) <= memory.limit)
    inner = inner_codes(domains)
    full = np.zeros((len(mask), *(len(c) for c in inner.values())), bool)
    places = [np.searchsorted(inner[n], points.inner[n]) for n in INNER]
    full[np.ix_(np.arange(len(mask)), *places)] = mask
    skeletons, bits = fold(points.skeletons, inner, full)
    return FeasibleSet(
        problem=domains.problem,
        space=domains.space,
        skeletons=skeletons,
        inner=inner,
        bits=bits,
        legal_count=points.count,
        engine=engine,
        rules_only=rules_only,
    )


def _by_cpsat(
    domains: Domains, engine: Engine, rules_only: bool, progress: Progress | None
) -> FeasibleSet:
    from .cpsat.enumerate import enumerate_cpsat

    fits = None
    if not rules_only:
        from .peaks import Peaks

        fits = Peaks(domains).fits
    found = enumerate_cpsat(domains, fits, progress)
    inner = inner_codes(domains)
    skeletons, bits = fold_rows(found, inner)
    return FeasibleSet(
        problem=domains.problem,
        space=domains.space,
        skeletons=skeletons,
        inner=inner,
        bits=bits,
        legal_count=legal_points(domains).count,
        engine=engine,
        rules_only=rules_only,
    )


def inner_codes(
    domains: Domains,
) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return every value of the inner axes, ascending."""
    return {n: np.asarray(domains.values[n], np.int64) for n in INNER}
