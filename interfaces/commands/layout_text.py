"""A layout that a user gives whole: in words, or in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...models.axis_values import value_label
from ...models.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...models.layout import Layout

_WAY_OUT = "give tp=4,pp=2,... or a file of `shardproof plan|project|memory --json`"


def layout_pins(text: str) -> list[str]:
    """Return a layout as pins, each ``AXIS=VALUE``.

    Parameters
    ----------
    text
        ``tp=4,pp=2`` or such, or a file: a document of this command line (of an
        answer its first configuration), or YAML with a value for each axis.

    Raises
    ------
    InputError
        If it is neither.
    """
    path = Path(text)
    if "=" in text and not path.is_file():
        return [part.strip() for part in text.split(",") if part.strip()]
    return [f"{name}={_text(value)}" for name, value in _labels(path).items()]


def pins_of(layout: Layout) -> dict[str, str]:
    """Return the axes of a layout as a user writes them, those that follow left out."""
    from ...models.layout import DERIVED

    written = {n: c for n, c in layout.written().items() if n not in DERIVED}
    return {name: value_label(name, code) for name, code in written.items()}


def labels_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the layout of a document, of an answer that of its first one."""
    from ...models.layout import DERIVED

    found = document["answers"][0]["layout"] if "answers" in document else None
    if found is None:
        found = document.get("layout", document)
    return {name: label for name, label in dict(found).items() if name not in DERIVED}


def _labels(path: Path) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        return labels_of(dict(found))
    except (
        OSError,
        ValueError,
        TypeError,
        LookupError,
        RecursionError,
        yaml.YAMLError,
    ) as error:
        reason = f"{type(error).__name__}: {error}".split("\n")[0][:160]
        raise InputError(
            f"the layout must be axes or a file that holds them, got {str(path)[:80]} "
            f"({reason}); {_WAY_OUT}"
        ) from None


def _text(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
