"""Why nothing is feasible: every minimal conflict and every minimal correction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.errors import InputError
from ...models.layout import AXES, axis_label
from ..answer import Clash, Infeasible
from ..masks import hitting_sets
from ..rules import Facts
from ..single import memory_clash, words
from ..vector import raw_count
from .limits import lift
from .search import MEMORY, corrections, mask_of

if TYPE_CHECKING:
    from ..answer import Correction
    from ..domains import Domains
    from ..rules import Rule
    from .limits import Request


#: Raw points beyond which a request is not explained point by point.
MOST_POINTS = 200_000_000


def explain(domains: Domains, legal_count: int = 0) -> Infeasible:
    """Find why a space has no feasible point; pins are constraints beside rules.

    Parameters
    ----------
    domains
        The problem over its space.
    legal_count
        Configurations that the rules allow, for the record.
    """
    return explain_request(lift(domains), legal_count)


def explain_request(request: Request, legal_count: int = 0) -> Infeasible:
    """Find why a request has no feasible point.

    Returns
    -------
    Infeasible
        Its conflicts and corrections name rules, limits and ``memory``; a feasible
        request has one correction, which is empty, and no conflict.

    Raises
    ------
    InputError
        If there are too many raw points to look at each.
    """
    number = raw_count(request.wide)
    if number > MOST_POINTS:
        raise InputError(
            f"an explanation looks at most at {MOST_POINTS:,} raw points, got "
            f"{number:,}; narrow some axes with --axis or --pin"
        )
    found, _ = corrections(request)
    conflicts = conflicts_of(found)
    by_memory = next((c for c in found if c.rules == (MEMORY,)), None)
    return Infeasible(
        problem=request.asked.problem,
        clashes=_clashes(request, conflicts, found),
        conflicts=conflicts,
        corrections=found,
        missing_bytes=by_memory.missing_bytes if by_memory else None,
        nearest=by_memory.witness if by_memory else None,
        space=request.asked.space.label,
        legal_count=legal_count,
    )


def conflicts_of(found: tuple[Correction, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the minimal sets of constraints that meet every correction."""
    names = list(dict.fromkeys(name for c in found for name in c.rules))
    masks = [mask_of(c.rules, names) for c in found]
    return tuple(
        tuple(n for i, n in enumerate(names) if h >> i & 1)
        for h in hitting_sets(masks)
        if h
    )


def _clashes(
    request: Request,
    conflicts: tuple[tuple[str, ...], ...],
    found: tuple[Correction, ...],
) -> tuple[Clash, ...]:
    """Write the smallest conflict in words."""
    return sentences(request, conflicts[0], found) if conflicts else ()


def sentences(
    request: Request, conflict: tuple[str, ...], found: tuple[Correction, ...]
) -> tuple[Clash, ...]:
    """Write the constraints of a conflict in words, values filled in."""
    domains = request.asked
    facts = Facts(problem=domains.problem, dims=domains.dims)
    by_id = {rule.id: rule for rule, _ in domains.rules}
    limits = {limit.id: limit for limit in request.limits}

    def written(name: str) -> Clash:
        if name in limits:
            return Clash(rule=name, sentence=limits[name].sentence)
        if name in by_id:
            return _in_space(by_id[name], facts, domains)
        return _memory(domains, found)

    return tuple(written(name) for name in conflict)


def _memory(domains: Domains, found: tuple[Correction, ...]) -> Clash:
    """Say by how much the least demanding point with the fewest breaks is over."""
    nearest = min(
        (c for c in found if MEMORY in c.rules),
        key=lambda c: (len(c.rules), c.missing_bytes),
    )
    limit = domains.problem.cluster.device.hbm_bytes
    return memory_clash(limit + nearest.missing_bytes, nearest.witness, limit)


def _in_space(rule: Rule, facts: Facts, domains: Domains) -> Clash:
    """Fill a rule's sentence with constants and the values the axes can take."""
    sentence = rule.sentence.format(**facts.constants)
    shown = [
        f"{n} in {{{_values(n, domains.values[n])}}}"
        for n in AXES
        if n in words(sentence)
    ]
    if shown:
        sentence = f"{sentence}; here {', '.join(shown)}"
    return Clash(rule=rule.id, sentence=sentence)


def _values(name: str, codes: tuple[int, ...]) -> str:
    shown = ", ".join(axis_label(name, c) for c in codes[:6])
    return shown + (", ..." if len(codes) > 6 else "")
