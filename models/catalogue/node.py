"""Typed reading of plain data: each field once, with its type, and none left over."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from ..errors import InputError, unknown_name
from ..units import parse_bytes
from .text import brief

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: No count of a real model or machine is larger.
LARGEST_WHOLE = 2**40
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class _Required:
    """Marks a field without a default."""


REQUIRED = _Required()


class Node:
    """A mapping that is read field by field.

    Every read notes the field, so that ``done`` finds those that nobody understood.
    A field that is null reads as if it were missing.
    """

    def __init__(self, data: object, label: str) -> None:
        """Wrap a mapping; ``label`` names it in messages."""
        if not isinstance(data, dict):
            raise InputError(f"{label} must be a mapping of fields, got {brief(data)}")
        for key in data:
            if not isinstance(key, str):
                raise InputError(
                    f"{label} must have text as names of fields, got {brief(key)}"
                )
        self.label = label
        self._data: Mapping[str, Any] = data
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        """Whether a field is given and not null."""
        return self._data.get(name) is not None

    def peek(self, name: str) -> Any:
        """Return a field as it is, None if missing, without noting it as read."""
        return self._data.get(name)

    def names(self) -> tuple[str, ...]:
        """Names of all fields."""
        return tuple(self._data)

    def unread(self) -> tuple[str, ...]:
        """Names of the fields that were not read."""
        return tuple(name for name in self._data if name not in self._read)

    def skip(self, *names: str) -> None:
        """Note fields as understood and of no effect."""
        self._read.update(names)

    def get(self, name: str, default: object = REQUIRED) -> Any:
        """Return a field or its default, and note it as read."""
        self._read.add(name)
        found = self._data.get(name)
        if found is None:
            if isinstance(default, _Required):
                raise InputError(f"{self.label} needs the field {name}")
            return default
        return found

    def whole(
        self, name: str, default: int | _Required = REQUIRED, *, least: int = 1
    ) -> int:
        """Return a whole number of at least ``least``."""
        found = self.get(name, default)
        if isinstance(found, bool) or not isinstance(found, int):
            raise self._wrong(name, "a whole number", found)
        if not least <= found <= LARGEST_WHOLE:
            rule = f"a whole number in {least}..{LARGEST_WHOLE:,}"
            raise self._wrong(name, rule, found)
        return found

    def maybe_whole(self, name: str, *, least: int = 1) -> int | None:
        """Return a whole number, or None where the field is missing or null."""
        self._read.add(name)
        return self.whole(name, least=least) if name in self else None

    def number(self, name: str, default: float | _Required = REQUIRED) -> float:
        """Return a positive number; YAML reads ``3.35e12`` as text, which is taken."""
        found = self.get(name, default)
        if isinstance(found, str) and _NUMBER.fullmatch(found):
            found = float(found)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self._wrong(name, "a number", found)
        if not (found > 0 and found < 1e30 and math.isfinite(found)):
            raise self._wrong(name, "a positive number below 1e30", found)
        return float(found)

    def maybe_number(self, name: str) -> float | None:
        """Return a positive number, or None where the field is missing or null."""
        self._read.add(name)
        return self.number(name) if name in self else None

    def size(self, name: str) -> int:
        """Return bytes, given as a whole number or as text such as ``79.11GiB``."""
        found = self.get(name)
        if isinstance(found, str):
            return int(parse_bytes(found))
        return self.whole(name, least=1)

    def flag(self, name: str, default: bool | _Required = REQUIRED) -> bool:
        """Return true or false."""
        found = self.get(name, default)
        if not isinstance(found, bool):
            raise self._wrong(name, "true or false", found)
        return found

    def text(self, name: str, default: str | _Required = REQUIRED) -> str:
        """Return text."""
        found = self.get(name, default)
        if not isinstance(found, str):
            raise self._wrong(name, "text", found)
        return found

    def choice(
        self, name: str, known: Iterable[str], default: str | _Required = REQUIRED
    ) -> str:
        """Return one of the known words."""
        found = self.text(name, default)
        if found not in (words := tuple(known)):
            raise unknown_name(f"{name} of {self.label}", found, words)
        return found

    def items(self, name: str, default: list[Any] | _Required = REQUIRED) -> list[Any]:
        """Return a list."""
        found = self.get(name, default)
        if not isinstance(found, list):
            raise self._wrong(name, "a list", found)
        return found

    def node(self, name: str) -> Node:
        """Return a mapping inside this one."""
        return Node(self.get(name), f"{name} of {self.label}")

    def done(self) -> None:
        """Refuse fields that were not read."""
        if extra := self.unread():
            raise unknown_name(f"field of {self.label}", extra[0], self._read)

    def _wrong(self, name: str, rule: str, found: object) -> InputError:
        return InputError(f"{name} of {self.label} must be {rule}, got {brief(found)}")
