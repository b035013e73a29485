"""Quantities as a user writes them: ``80GiB``, ``25..100GB/s``, ``1,2,4``."""

from __future__ import annotations

import math
import re

from ..models.errors import InputError
from ..models.units import parse_bytes

_SCALES = {
    "bytes/s": {"GB/s": 1e9, "TB/s": 1e12, "MB/s": 1e6, "B/s": 1.0},
    "FLOP/s": {"TFLOP/s": 1e12, "PFLOP/s": 1e15, "GFLOP/s": 1e9, "FLOP/s": 1.0},
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6},
    "": {"": 1.0},
    "whole": {"": 1.0},
}
_NUMBER = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,2})?)\s*(\S*)\s*")
_STEPS = 5
_MOST_STEPS = 1000
_MOST_WHOLE = 10_000


def positive(
    option: str, value: float | None, *, below: float = 1e9, nought: bool = False
) -> float | None:
    """Return the number of an option if it is a usable one, None where none is given.

    Parameters
    ----------
    option
        The option, for the message.
    value
        What was given.
    below
        The least number that is refused as too large.
    nought
        Whether 0 is usable.

    Raises
    ------
    InputError
        If it is negative, too large or no number.
    """
    if value is None or 0 < value < below or (nought and value == 0):
        return value
    least = "at least 0" if nought else "above 0"
    raise InputError(f"{option} must be {least} and below {below:g}, got {value:g}")


def values_of(name: str, kind: str, text: str) -> tuple[float, ...]:
    """Read values of one quantity.

    Parameters
    ----------
    name
        What the quantity is called.
    kind
        ``bytes``, ``bytes/s``, ``FLOP/s``, ``s``, ``whole``, or empty for a ratio.
    text
        One value, several behind commas, or ``LOW..HIGH`` with a number of steps
        behind a colon (5 if there is none; every whole number where few).

    Raises
    ------
    InputError
        If the text is none of these.
    """
    ends, _, steps = text.partition(":")
    low, dots, high = ends.partition("..")
    if not dots:
        if steps:
            raise InputError(f"{name} has steps only behind LOW..HIGH, got {text!r}")
        return tuple(_value(name, kind, part) for part in ends.split(","))
    first, last = _value(name, kind, _with_unit(low, high)), _value(name, kind, high)
    if not first < last:
        raise InputError(f"{name}=LOW..HIGH needs LOW below HIGH, got {text!r}")
    number = _number_of(name, steps, kind, first, last)
    found = [first + (last - first) * i / (number - 1) for i in range(number)]
    if kind in ("bytes", "whole"):
        return tuple(dict.fromkeys(float(round(v)) for v in found))
    return tuple(found)


def _number_of(name: str, steps: str, kind: str, first: float, last: float) -> int:
    if not steps:
        number = int(last - first) + 1 if kind == "whole" else _STEPS
        if number > _MOST_WHOLE:
            raise InputError(
                f"{name}=LOW..HIGH has at most {_MOST_WHOLE:,} values, got {number:,}; "
                f"give LOW..HIGH:STEPS"
            )
        return number
    if not steps.isascii() or not steps.isdigit() or not 2 <= int(steps) <= _MOST_STEPS:
        raise InputError(
            f"the steps of {name} are a whole number in 2..{_MOST_STEPS:,}, got "
            f"{steps[:20]!r}"
        )
    return int(steps)


def _with_unit(low: str, high: str) -> str:
    """Give the lower end the unit of the upper one if it has none."""
    match = _NUMBER.fullmatch(high)
    return low + match[2] if match and re.fullmatch(r"\s*[\d.]+\s*", low) else low


def _value(name: str, kind: str, text: str) -> float:
    if kind == "bytes":
        return float(parse_bytes(text))
    match, scales = _NUMBER.fullmatch(text), _SCALES[kind]
    unit = match[2] if match else ""
    if not match or unit not in scales:
        wanted = ", ".join(filter(None, scales)) or "no unit"
        raise InputError(
            f"{name} is a number with {wanted}, got {text[:40]!r}; for example "
            f"{name}={'25..100' + next(iter(scales))}"
        )
    value = float(match[1]) * scales[unit]
    if not math.isfinite(value) or (kind == "whole" and value != int(value)):
        raise InputError(f"{name} must be a whole number, got {text[:40]!r}")
    return value
