"""Read the arguments of a Megatron launch: ``--num-layers 32 --swiglu ...``.

An argument that is not there has the value that Megatron's ``arguments.py`` gives it.
Nothing is judged here beyond what must be known to build the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Value = str | int | float | bool | tuple[str, ...]
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")


@dataclass(frozen=True)
class Arguments:
    """Arguments by name, without the leading dashes.

    A flag that stands alone is True; ``--no-x`` is kept under its own name, for
    Megatron knows it by that.
    """

    values: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Normalise the names and freeze."""
        named = {k.lstrip("-").replace("_", "-"): v for k, v in self.values.items()}
        object.__setattr__(self, "values", MappingProxyType(named))

    @staticmethod
    def parse(words: Iterable[str]) -> Arguments:
        """Read the words of a command line; a repeated argument's last value holds.

        Raises
        ------
        InputError
            If a word stands before the first argument.
        """
        found: dict[str, list[str]] = {}
        now: list[str] | None = None
        for word in words:
            if word.startswith("--"):
                name, equal, value = word[2:].partition("=")
                now = found[name] = [value] if equal else []
            elif now is None:
                raise InputError(
                    "Megatron's arguments begin with --, such as --num-layers 32, got "
                    f"{word[:40]!r}"
                )
            else:
                now.append(word)
        return Arguments({name: _joined(words) for name, words in found.items()})

    def has(self, name: str) -> bool:
        """Whether a flag is set, or an argument given."""
        value = self.values.get(name)
        if isinstance(value, str) and value.lower() in _FALSE:
            return False
        return value is not None and value is not False

    def text(self, name: str, default: str = "") -> str:
        """Return an argument's words."""
        value = self.values.get(name)
        if value is None or value is True:
            return default
        return " ".join(value) if isinstance(value, tuple) else str(value)

    def whole(self, name: str, default: int | None = None, least: int = 0) -> int:
        """Return a whole number.

        Raises
        ------
        InputError
            If it is missing without a default, or no whole number of at least
            ``least``.
        """
        found = self.number(name, default)
        if not least <= found <= 2**40 or found != int(found):
            raise _wrong(name, f"a whole number of at least {least}", f"{found:g}")
        return int(found)

    def number(self, name: str, default: float | None = None) -> float:
        """Return a number.

        Raises
        ------
        InputError
            If it is missing without a default, or no number.
        """
        text = self.text(name)
        if not text:
            if default is None:
                raise _wrong(name, "a number", "nothing")
            return default
        try:
            return float(text)
        except ValueError:
            raise _wrong(name, "a number", text) from None


def _joined(words: list[str]) -> Value:
    if not words:
        return True
    return words[0] if len(words) == 1 else tuple(words)


def _wrong(name: str, kind: str, got: str) -> InputError:
    return InputError(f"--{name} is {kind}, got {got[:60]!r}")
