"""Why nothing is feasible: a minimal set of clashing rules, and the bytes missing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..models.layout import DECIDED, Layout, axis_label
from .answer import Clash, Infeasible
from .rules import Facts
from .single import memory_clash, rank_peaks
from .vector import legal_points

if TYPE_CHECKING:
    from ..models.expr import Array
    from .domains import Domains
    from .rules import Rule
    from .vector import Points

#: Rules without which dp, edp, m or the stages have no meaning; never dropped.
_STRUCTURE = frozenset(
    {
        "world-dense",
        "world-expert",
        "batch",
        "layers-pp",
        "layers-balanced",
        "layers-uneven",
        "schedule-vpp",
    }
)


def explain(domains: Domains, points: Points, peaks: Array) -> Infeasible:
    """Prove that nothing is feasible, in the rules' own words.

    Parameters
    ----------
    domains
        The problem over its space.
    points
        The points that the rules allow; none of them fits.
    peaks
        Peak bytes of every point, shape of ``points.legal``.
    """
    if points.count:
        return _too_large(domains, points, peaks)
    core = _minimal_core(domains)
    facts = Facts(problem=domains.problem, dims=domains.dims)
    return Infeasible(
        problem=domains.problem,
        clashes=tuple(_in_space(rule, facts, domains) for rule in core),
        missing_bytes=None,
        nearest=None,
        space=domains.space.label,
        legal_count=0,
    )


def _too_large(domains: Domains, points: Points, peaks: Array) -> Infeasible:
    """Name memory, by the legal configuration that needs least."""
    cost = np.where(points.legal, peaks, np.iinfo(np.int64).max)
    cheapest = np.zeros(cost.shape, bool)
    cheapest.flat[int(np.argmin(cost))] = True
    point = {n: int(c[0]) for n, c in points.columns(cheapest).items()}
    layout = Layout.from_point(point)
    per_rank = rank_peaks(domains, layout)
    limit = domains.problem.cluster.device.hbm_bytes
    worst = max(per_rank)
    return Infeasible(
        problem=domains.problem,
        clashes=(memory_clash(worst, per_rank.index(worst), limit),),
        missing_bytes=worst - limit,
        nearest=layout,
        space=domains.space.label,
        legal_count=points.count,
    )


def _minimal_core(domains: Domains) -> list[Rule]:
    """Drop rules one by one as long as the rest still excludes every point."""
    structure = [rule for rule, _ in domains.rules if rule.id in _STRUCTURE]
    core = [rule for rule, _ in domains.rules if rule.id not in _STRUCTURE]
    if not _exists(domains, [r.id for r in core]):
        return _structural_core(domains, structure)
    dropped: list[str] = []
    for rule in list(core):
        if not _exists(domains, [*dropped, rule.id]):
            dropped.append(rule.id)
    rest = [r for r in core if r.id not in dropped]
    for rule in structure:
        if _exists(domains, [*dropped, rule.id]):
            rest.append(rule)
        else:
            dropped.append(rule.id)
    return rest


def _structural_core(domains: Domains, structure: list[Rule]) -> list[Rule]:
    """Find which of the defining rules clash among themselves."""
    everything = [rule.id for rule, _ in domains.rules]
    dropped = [i for i in everything if i not in _STRUCTURE]
    for rule in structure:
        if not _exists(domains, [*dropped, rule.id]):
            dropped.append(rule.id)
    kept = [r for r in structure if r.id not in dropped]
    return kept or [r for r in structure if r.id in ("world-dense", "world-expert")]


def _exists(domains: Domains, skip: list[str]) -> bool:
    """Whether any point is legal without some rules; small pieces, first hit."""
    ids = frozenset(skip)
    for pp in domains.values["pp"]:
        for tp in domains.values["tp"]:
            part = replace(domains, values={**domains.values, "pp": (pp,), "tp": (tp,)})
            if legal_points(part, ids).count:
                return True
    return False


def _in_space(rule: Rule, facts: Facts, domains: Domains) -> Clash:
    """Fill a rule's sentence with constants and the values the axes can take."""
    sentence = rule.sentence.format(**facts.constants)
    words = set(sentence.replace(":", " ").replace(",", " ").split())
    shown = [
        f"{n} in {{{_values(n, domains.values[n])}}}" for n in DECIDED if n in words
    ]
    return Clash(
        rule=rule.id, sentence=f"{sentence}; {', '.join(shown)}" if shown else sentence
    )


def _values(name: str, codes: tuple[int, ...]) -> str:
    shown = ", ".join(axis_label(name, c) for c in codes[:6])
    return shown + (", ..." if len(codes) > 6 else "")
