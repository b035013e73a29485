"""Reading a Hugging Face ``config.json`` as an architecture.

Sizes must be given, options default to what ``transformers`` takes. A field that
nobody here understands and that is switched on is an error: it may change a tensor's
shape, and a wrong shape would spoil every answer silently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import InputError, unknown_name
from ..node import Node
from ..text import brief
from .families import FAMILIES
from .words import is_effectless, refuse

if TYPE_CHECKING:
    from ...architecture import Architecture


def read_config(data: object, label: str, name: str = "") -> Architecture:
    """Build an architecture from the content of a ``config.json``.

    Parameters
    ----------
    data
        The parsed file.
    label
        Names the file in messages.
    name
        Name of the architecture; empty for the family's.

    Raises
    ------
    InputError
        If the family is unknown or out of scope, a field is missing or wrong, or a
        field is switched on that is not understood.
    """
    node = Node(data, label)
    family = node.get("model_type", None)
    if family is None:
        raise InputError(
            f"{label} needs the field model_type, which names the model's family"
        )
    if not isinstance(family, str):
        raise InputError(f"model_type of {label} must be text, got {brief(family)}")
    refuse(family, node)
    if family not in FAMILIES:
        raise unknown_name("model_type", family, FAMILIES)
    found = FAMILIES[family](node, name or family.replace("_", "-"))
    _refuse_unread(node, family)
    return found


def _refuse_unread(node: Node, family: str) -> None:
    """Refuse a field that is switched on and that nobody understood."""
    for field in node.unread():
        value = node.peek(field)
        is_off = value is None or value is False or value in (0, "", [], {})
        if not is_off and not is_effectless(field):
            raise InputError(
                f"{node.label}: the field {field!r} is not understood for "
                f"{family} and may change a tensor's shape, got {brief(value)}; "
                "remove it from a copy of the file if it changes none"
            )
