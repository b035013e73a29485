"""Readers of single values in a user's mapping, each with one clear sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX = 2**26


def whole(
    source: Mapping[str, Any], name: str, default: int | None = None, least: int = 1
) -> int:
    """Return a whole number of a mapping.

    Raises
    ------
    InputError
        If it is missing without a default, no whole number, or out of bounds.
    """
    value: Any = source.get(name)
    value = default if value is None else value
    counts = isinstance(value, int) and not isinstance(value, bool)
    if counts and least <= value <= _MAX:
        return int(value)
    got = "nothing" if value is None else repr(str(value)[:60])
    raise InputError(f"{name} is a whole number in {least}..{_MAX:,}, got {got}")


def text_of(source: Mapping[str, Any], name: str, default: str) -> str:
    """Return a short text of a mapping.

    Raises
    ------
    InputError
        If it is no text, or a long one.
    """
    value = source.get(name)
    if value is None:
        return default
    if isinstance(value, str) and len(value) <= 1000:
        return value
    raise InputError(f"{name} is a short text, got {str(value)[:60]!r}")


def flag(source: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """Return a truth value of a mapping.

    Raises
    ------
    InputError
        If it is neither true nor false.
    """
    value = source.get(name)
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    raise InputError(f"{name} is true or false, got {str(value)[:60]!r}")
