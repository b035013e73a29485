"""The lists of ``data/huggingface.json``: fields without effect, families refused.

Fields without effect change no tensor's shape and no layer's kind. They are text
processing, generation, initialisation, losses, dropout, rotary angles, numerics,
storage formats and records of where a file came from.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ..store import table

if TYPE_CHECKING:
    from ..node import Node

_PATTERNS = re.compile(
    r"_.*|.*_token_id|.*_tokens?_ids?|.*_eps|.*_epsilon|.*dtype|.*_version"
    r"|.*_dropout(_prob)?|unsloth.*"
)


def _lists() -> dict[str, Any]:
    return table("huggingface", shipped_only=True)


def is_effectless(field: str) -> bool:
    """Whether a field is known to change no shape."""
    return field in _lists()["effectless"] or _PATTERNS.fullmatch(field) is not None


def refuse(family: str, node: Node) -> None:
    """Refuse a family or a field that is out of scope.

    Raises
    ------
    InputError
        Naming the family and the rule.
    """
    for row in _lists()["refused"]:
        if family in row["families"] or any(node.peek(f) for f in row["marks"]):
            raise InputError(
                f"models of model_type {family!r} are out of scope: {row['rule']} are "
                "not planned; shardproof plans decoder-only transformers of attention "
                "and dense or mixture-of-experts layers"
            )
