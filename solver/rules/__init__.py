"""Legality rules as data: what each framework itself accepts."""

from __future__ import annotations

from .divisibility import DIVISIBILITY
from .groups import GROUPS
from .pipeline import PIPELINE
from .placement import PLACEMENT
from .rule import DIALECTS as DIALECTS
from .rule import Facts as Facts
from .rule import Rule as Rule
from .rule import parse_dialect as parse_dialect

#: Every rule of every dialect, in the order in which they are reported.
ALL_RULES: tuple[Rule, ...] = (*GROUPS, *DIVISIBILITY, *PIPELINE, *PLACEMENT)


def rules(dialect: str) -> tuple[Rule, ...]:
    """Return the rules of one release of a dialect, such as ``megatron@0.16``.

    Raises
    ------
    InputError
        If the dialect or its release is unknown.
    """
    name, release = parse_dialect(dialect)
    releases = DIALECTS[name]
    at = releases.index(release)

    def holds(rule: Rule) -> bool:
        begun = not rule.since or releases.index(rule.since) <= at
        ended = bool(rule.until) and releases.index(rule.until) < at
        return rule.dialect == name and begun and not ended

    return tuple(rule for rule in ALL_RULES if holds(rule))
