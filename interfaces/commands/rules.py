"""``shardproof rules``: the rules of a dialect, with sentence and source."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..document import RULES, Document
from ..table import Column, Table
from .report import OK, finish

if TYPE_CHECKING:
    from ...solver.rules import Rule

#: The place of a problem's own value in a sentence, such as `` (W = {W})``.
_VALUE = re.compile(r" \((?:\w+ = \{\w+\}(?:, )?)+\)")


def run(dialect: str, *, as_json: bool) -> int:
    """List, print, and return the exit code."""
    from ...solver.rules import parse_dialect, rules

    name = "@".join(parse_dialect(dialect))
    found = rules(name)
    columns = (
        Column("rule", "left"),
        Column("kind", "left"),
        Column("refused at", "left"),
        Column("sentence", "left", wrap=True),
        Column("source", "left", wrap=True),
    )
    rows = [
        (r.id, r.kind, r.where, _VALUE.sub("", r.sentence), r.source) for r in found
    ]
    finish(
        {"schema": RULES, "dialect": name, "rules": [document(r) for r in found]},
        title=f"{len(found)} rules of {name}",
        tables=[Table(columns, tuple(rows))],
        text="W devices, S sequence length, L layers, H attention heads, KV key/value "
        "heads, E experts, B global batch, m micro-batches of a rank, D devices of a "
        "scale-up domain.",
        as_json=as_json,
    )
    return OK


def document(rule: Rule) -> Document:
    """Return one rule without its body."""
    names = (
        "id",
        "sentence",
        "source",
        "kind",
        "where",
        "checker",
        "machine_checked",
        "dialect",
        "since",
        "until",
    )
    return {name: getattr(rule, name) for name in names}
