"""Units of measure: SI inside, human units only where a person reads.

``Bytes`` are whole; ``Seconds``, ``Flops``, ``BytesPerSecond`` are floats.
1 GB = 1e9 bytes and 1 GiB = 2**30 bytes are never mixed.
"""

from __future__ import annotations

import re
from typing import NewType

from .errors import InputError

Bytes = NewType("Bytes", int)
Seconds = NewType("Seconds", float)
Flops = NewType("Flops", float)
FlopsPerSecond = NewType("FlopsPerSecond", float)
BytesPerSecond = NewType("BytesPerSecond", float)

GIB = 2**30
GB = 10**9

_SCALES = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}


def parse_bytes(text: str | int) -> Bytes:
    """Read a size such as ``80GiB``, ``141 GB`` or a whole number of bytes.

    Parameters
    ----------
    text
        The size; a bare number is in bytes.

    Returns
    -------
    Bytes
        The size in bytes, rounded down.

    Raises
    ------
    InputError
        If the text is no size or the size is negative.
    """
    if isinstance(text, int):
        if text < 0:
            raise InputError(f"a size is at least 0 bytes, got {text}")
        return Bytes(text)
    match = re.fullmatch(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)\s*", text)
    if not match or match[2].upper() not in _SCALES:
        raise InputError(
            f"a size is a number and a unit such as 80GiB or 141GB, got {text!r}"
        )
    return Bytes(int(float(match[1]) * _SCALES[match[2].upper()]))


def gib(size: int) -> str:
    """Write bytes for a person, in GiB."""
    return f"{size / GIB:,.2f} GiB"


def duration(seconds: float) -> str:
    """Write a time for a person, in s, ms or us."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1 or unit == "us":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError("the loop always returns")
