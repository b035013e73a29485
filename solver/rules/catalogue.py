"""The rules as a page for people: ``python -m shardproof.solver.rules.catalogue``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import ALL_RULES, BASES, DIALECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .rule import Rule

_VALUES = re.compile(r" \([^()]*\{[^()]*\)")


def plain_sentence(rule: Rule) -> str:
    """Return a rule's sentence without the values that reports fill in."""
    return _VALUES.sub("", rule.sentence)


def releases(rule: Rule) -> str:
    """Return the releases of its dialect that have the rule, as a person reads it."""
    known = DIALECTS[rule.dialect]
    first = known.index(rule.since) if rule.since else 0
    last = known.index(rule.until) if rule.until else len(known) - 1
    span = known[first : last + 1]
    return span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}"


def tables() -> str:
    """Return one Markdown table for each dialect."""
    return "\n".join(line for name in DIALECTS for line in _table(name))


def _table(dialect: str) -> Iterator[str]:
    found = [rule for rule in ALL_RULES if rule.dialect == dialect]
    yield f"## {dialect}"
    yield ""
    if dialect in BASES:
        yield f"All rules of {BASES[dialect]}, those of the same id replaced."
        yield ""
    if found:
        yield "| id | rule | kind | refused at | checked by | releases | source |"
        yield "|---|---|---|---|---|---|---|"
    for rule in found:
        cells = (
            rule.id,
            plain_sentence(rule),
            rule.kind,
            rule.where,
            rule.checker,
            releases(rule),
            rule.source,
        )
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    if found:
        yield ""


if __name__ == "__main__":
    print(tables())
