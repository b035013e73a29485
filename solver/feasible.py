"""The complete set of feasible configurations, as a value."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..models.layout import DECIDED, DERIVED, Layout
from .domains import Domains, bind
from .vector import legal_points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..models.expr import Array
    from ..models.problem import Problem
    from .space import Space

Engine = Literal["vector", "cpsat", "both"]
NAMES = (*DECIDED, *DERIVED)


class EnginesDisagreeError(RuntimeError):
    """The two engines found different sets: a defect, never a property of input."""


@dataclass(frozen=True, kw_only=True)
class FeasibleSet:
    """Every configuration of a space that the rules allow and that fits.

    Attributes
    ----------
    columns
        One row a configuration, all axes by name, in lexicographic order.
    peak_bytes
        Peak over the pipeline ranks of each configuration in bytes; None where
        only rules were asked for.
    legal_count
        Configurations that the rules allow, whether they fit or not.
    engine
        What found the set; ``both`` means two engines found the same one.
    """

    problem: Problem
    space: Space
    columns: Mapping[str, Array]
    peak_bytes: Array | None
    legal_count: int
    engine: Engine

    @property
    def count(self) -> int:
        """Number of configurations."""
        return len(self.columns["tp"])

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the rows, the same on every machine and for every engine."""
        digest = hashlib.sha256(",".join(NAMES).encode())
        for name in NAMES:
            digest.update(np.ascontiguousarray(self.columns[name], "<i8").tobytes())
        return digest.hexdigest()

    def layouts(self) -> Iterator[Layout]:
        """Yield the configurations one by one."""
        for i in range(self.count):
            yield self.layout(i)

    def layout(self, row: int) -> Layout:
        """Return one configuration."""
        return Layout(**{n: int(self.columns[n][row]) for n in NAMES})


def enumerate_feasible(
    problem: Problem,
    space: Space,
    *,
    engine: Engine = "vector",
    rules_only: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
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
    EnginesDisagreeError
        If the engines find different sets.
    IncompleteError
        If CP-SAT could not finish.
    """
    domains = bind(problem, space)
    by_vector = None
    if engine != "cpsat":
        by_vector = _by_vector(domains, engine, rules_only, progress)
    if engine == "vector":
        assert by_vector is not None
        return by_vector
    by_cpsat = _by_cpsat(domains, engine, rules_only, progress)
    if by_vector and by_vector.content_hash != by_cpsat.content_hash:
        raise EnginesDisagreeError(
            f"CP-SAT finds {by_cpsat.count:,} configurations and the arrays "
            f"{by_vector.count:,}, or others: please report this problem"
        )
    return by_vector or by_cpsat


def _by_vector(
    domains: Domains,
    engine: Engine,
    rules_only: bool,
    progress: Callable[[str, int, int], None] | None,
) -> FeasibleSet:
    points = legal_points(domains)
    mask, peaks = points.legal, None
    if not rules_only:
        from .peaks import Peaks

        memory = Peaks(domains)
        all_peaks = memory.of_points(points, progress)
        mask = mask & (all_peaks <= memory.limit)
        peaks = all_peaks[mask]
    columns = points.columns(mask)
    order = _order(columns)
    return FeasibleSet(
        problem=domains.problem,
        space=domains.space,
        columns={n: columns[n][order] for n in NAMES},
        peak_bytes=None if peaks is None else peaks[order],
        legal_count=points.count,
        engine=engine,
    )


def _by_cpsat(
    domains: Domains,
    engine: Engine,
    rules_only: bool,
    progress: Callable[[str, int, int], None] | None,
) -> FeasibleSet:
    from .cpsat.enumerate import enumerate_cpsat

    memory = None
    if not rules_only:
        from .peaks import Peaks

        memory = Peaks(domains)
    found = enumerate_cpsat(domains, memory.fits if memory else None, progress)
    order = _order(found)
    columns = {n: found[n][order] for n in NAMES}
    return FeasibleSet(
        problem=domains.problem,
        space=domains.space,
        columns=columns,
        peak_bytes=memory.of_columns(columns) if memory else None,
        legal_count=legal_points(domains).count,
        engine=engine,
    )


def _order(columns: Mapping[str, Array]) -> Array:
    return np.lexsort([columns[n] for n in reversed(NAMES)])
