"""Options: what a framework can be told beside the axes of the layout.

An option is an axis with a default. Rules are written on all of them; as long as
nobody sets an option it is the constant that the planner's own launch files write,
and the rule folds to what it says about the axes alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import InputError

Kind = Literal["flag", "choice", "set", "whole"]
#: A whole-number option without a value.
UNSET = -(2**31)
_LIMIT = 2**31


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option of a framework and its coding as a whole number.

    Attributes
    ----------
    name
        The framework's own name.
    kind
        ``flag`` is 0 or 1, ``choice`` a position in ``labels``, ``set`` bits over
        ``labels``, ``whole`` the number itself or ``UNSET``.
    labels
        The values a framework knows. A name it does not know is coded
        ``len(labels)`` in a choice, and as one more bit in a set.
    default
        The code of what the planner's launch files write.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...] = ()
    default: int = 0

    @property
    def unknown(self) -> int:
        """Code of a choice, or bit of a set, that the framework does not know."""
        return len(self.labels) if self.kind == "choice" else 1 << len(self.labels)

    def code(self, value: object) -> int:
        """Code a value as a configuration file has it.

        Raises
        ------
        InputError
            If the value is not of the option's kind.
        """
        match self.kind:
            case "flag" if isinstance(value, bool):
                return int(value)
            case "choice" if value is None and "none" in self.labels:
                return self.labels.index("none")
            case "choice" if isinstance(value, str):
                known = value in self.labels and value != "auto"
                return self.labels.index(value) if known else self.unknown
            case "set" if value is None:
                return 0
            case "set" if isinstance(value, list | tuple):
                return self._bits(value)
            case "whole" if value is None:
                return UNSET
            case "whole" if isinstance(value, int) and not isinstance(value, bool):
                if abs(value) < _LIMIT:
                    return value
        raise InputError(
            f"option {self.name} is {_WANTED[self.kind]}, got {str(value)[:60]!r}"
        )

    def _bits(self, names: list[object] | tuple[object, ...]) -> int:
        code = 0
        for name in names:
            if not isinstance(name, str):
                raise InputError(
                    f"option {self.name} is {_WANTED['set']}, got {str(name)[:60]!r}"
                )
            known = name in self.labels
            code |= 1 << self.labels.index(name) if known else self.unknown
        return code

    def label(self, code: int) -> str:
        """Write a code as a user reads it."""
        match self.kind:
            case "flag":
                return "on" if code else "off"
            case "choice":
                return self.labels[code] if code < len(self.labels) else "(unknown)"
            case "set":
                names = [n for i, n in enumerate(self.labels) if code >> i & 1]
                if code & self.unknown:
                    names.append("(unknown)")
                return "+".join(names) or "none"
            case _:
                return "not given" if code == UNSET else str(code)


_WANTED = {
    "flag": "true or false",
    "choice": "one name",
    "set": "a list of names",
    "whole": f"a whole number within 2**31, or null, {UNSET} being reserved",
}


def flags(*names: str, on: bool = False) -> tuple[Option, ...]:
    """Return options that are on or off."""
    return tuple(Option(name=n, kind="flag", default=int(on)) for n in names)


def choice(name: str, *labels: str, default: str = "") -> Option:
    """Return an option that is one of some names, the first by default."""
    at = labels.index(default) if default else 0
    return Option(name=name, kind="choice", labels=labels, default=at)


def number(name: str, default: int = UNSET) -> Option:
    """Return an option that is a whole number."""
    return Option(name=name, kind="whole", default=default)
