"""One configuration, given whole: projected, or listed byte by byte."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..solver.answer import Clash, Correction, Infeasible, Memory

if TYPE_CHECKING:
    from ..models.layout import Layout
    from ..models.memory import Item
    from ..models.problem import Problem
    from ..solver.answer import Answer
    from .request import Request

MEMORY = "memory"


@dataclass(frozen=True, kw_only=True)
class MemoryReport:
    """What lies in memory at the peak of one configuration.

    Attributes
    ----------
    problem, layout
        What was asked.
    memory
        Peak bytes of every pipeline rank.
    limit_bytes
        What a process can use on the device.
    rank
        The pipeline rank that is listed.
    items
        What is alive at that rank's peak, and its bytes.
    """

    problem: Problem
    layout: Layout
    memory: Memory
    limit_bytes: int
    rank: int
    items: tuple[tuple[Item, int], ...]

    @property
    def fits(self) -> bool:
        """Whether every rank fits on the device."""
        return self.memory.peak_bytes <= self.limit_bytes


def complete(request: Request) -> tuple[Problem, Layout]:
    """Look up the problem and fill in the layout that its pins begin.

    Raises
    ------
    InputError
        If a name is unknown or the sizes do not fit the cluster or the batch.
    """
    from ..solver.single import complete_layout

    problem = replace(request.problem(), pins={})
    return problem, complete_layout(problem, request.partial())


def project_one(request: Request) -> Answer | Infeasible:
    """Plan over the space that holds one layout alone.

    Raises
    ------
    InputError
        As ``complete``.
    """
    from ..solver.plan import plan
    from ..solver.single import space_of

    problem, layout = complete(request)
    broken = [c for c in _broken(problem, layout) if c.rule != MEMORY]
    if broken:
        return _refused(problem, layout, broken)
    return plan(problem, space_of(layout), top=1)


def memory_one(request: Request, rank: int | None = None) -> MemoryReport | Infeasible:
    """List one pipeline rank of one layout, the fullest if ``rank`` is None.

    Raises
    ------
    InputError
        As ``complete``, and if there is no such rank.
    """
    from ..solver.single import domains_of, ledger, rank_peaks

    problem, layout = complete(request)
    broken = [c for c in _broken(problem, layout) if c.rule != MEMORY]
    if broken:
        return _refused(problem, layout, broken)
    per_rank = rank_peaks(domains_of(problem, layout), layout)
    listed = per_rank.index(max(per_rank)) if rank is None else rank
    return MemoryReport(
        problem=problem,
        layout=layout,
        memory=Memory(peak_bytes=max(per_rank), per_rank=per_rank),
        limit_bytes=problem.cluster.device.hbm_bytes,
        rank=listed,
        items=tuple(ledger(problem, layout, listed)),
    )


def advice(problem: Problem, layout: Layout) -> tuple[Clash, ...]:
    """Return the advice that a layout ignores."""
    from ..solver.rules import rules
    from ..solver.single import broken_rules

    soft = {r.id for r in rules(problem.dialect) if r.kind != "hard"}
    return tuple(c for c in broken_rules(problem, layout) if c.rule in soft)


def _broken(problem: Problem, layout: Layout) -> list[Clash]:
    from ..solver.rules import rules
    from ..solver.single import broken_rules

    soft = {r.id for r in rules(problem.dialect) if r.kind != "hard"}
    return [c for c in broken_rules(problem, layout) if c.rule not in soft]


def _refused(problem: Problem, layout: Layout, broken: list[Clash]) -> Infeasible:
    """Each broken rule is a conflict by itself; all must go to correct it."""
    ids = tuple(c.rule for c in broken)
    return Infeasible(
        problem=problem,
        clashes=tuple(broken),
        conflicts=tuple((i,) for i in ids),
        corrections=(Correction(rules=ids, missing_bytes=0, witness=layout),),
        missing_bytes=None,
        nearest=None,
        space="layout@1",
        legal_count=0,
    )
