"""Output of nccl-tests and rccl-tests, and vTrain's tables of it.

The tools print a line for each size: bytes, count, type, operation, root, then time in
microseconds, algbw and busbw, out of place first. vTrain keeps bytes, count, type,
time in nanoseconds and busbw.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.errors import InputError
from .links import COLLECTIVES, collective
from .machines import device_named

if TYPE_CHECKING:
    from pathlib import Path

    from ..rows import Rows
    from .rules import Drops

_VTRAIN = {
    "source": "VIA-Research/vTrain",
    "version": "commit f8dda84",
    "licence": "see the repository",
}
#: Columns before the time: with a reduction and root, with neither.
_TIME = {True: 5, False: 3}


def read_nccl_text(path: Path, device: str, drops: Drops) -> list[Rows]:
    """Read one output file.

    Raises
    ------
    InputError
        If no line holds a measurement, the last one is cut off, or the collective, the
        number of ranks or the device cannot be told.
    """
    try:
        text = path.read_text(errors="strict")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path.name}: {error}") from error
    if text.startswith("size(B)"):
        return _vtrain(text, path.name, device, drops)
    name = _collective(text, path.name)
    ranks = len(re.findall(r"^#\s+Rank\s+\d+", text, re.MULTILINE))
    if not ranks:
        raise InputError(
            f"{path.name} lists no ranks: keep the '# Rank ...' lines that the tool "
            "prints first"
        )
    known = device or device_named(text.split("#  Rank", 1)[-1][:2000])
    sizes, times = [], []
    for line in text.splitlines():
        words = line.split()
        if not words or not words[0].isdigit():
            continue
        numeric = len(words) > 4 and words[4].lstrip("-").isdigit()
        at = _TIME[numeric]
        if len(words) < at + 3:
            raise InputError(f"{path.name} is cut off at the line {line.strip()!r}")
        sizes.append(float(words[0]))
        times.append(_number(words[at]) * 1e-6)
    return _finish(name, known, ranks, sizes, times, path.name, drops, {})


def _vtrain(text: str, where: str, device: str, drops: Drops) -> list[Rows]:
    ranks = re.search(r"gpu(\d+)", where.lower())
    if ranks is None:
        raise InputError(f"{where} does not say how many GPUs: name it ..._gpuN.txt")
    sizes, times = [], []
    for line in text.splitlines()[1:]:
        words = line.split(",")
        if len(words) != 7:
            raise InputError(f"{where} is cut off at the line {line!r}")
        sizes.append(float(words[0]))
        times.append(_number(words[3]) * 1e-9)
    known = device or device_named(where)
    count = int(ranks.group(1))
    return _finish("all_reduce", known, count, sizes, times, where, drops, _VTRAIN)


def _finish(
    name: str,
    device: str,
    ranks: int,
    sizes: list[float],
    times: list[float],
    where: str,
    drops: Drops,
    source: dict[str, Any],
) -> list[Rows]:
    if not sizes:
        raise InputError(f"{where} holds no measurement of a collective")
    seconds = np.array(times)
    whole = np.array(sizes)
    good = np.isfinite(seconds) & (seconds > 0)
    drops.add("time", int((~good).sum()))
    drops.add("size", int((good & (whole < 1)).sum()))
    good &= whole >= 1
    known = source or {"source": "user", "version": "", "licence": ""}
    rows = collective(
        name,
        device,
        {"bytes": whole[good], "ranks": np.full(int(good.sum()), float(ranks))},
        seconds[good],
        {**known, "table": where},
        where,
    )
    return [rows]


def _collective(text: str, where: str) -> str:
    for words in (text[:4000].lower(), where.lower()):
        for spelling, name in COLLECTIVES.items():
            if f"{spelling}_perf" in words:
                return name
    for spelling, name in COLLECTIVES.items():
        if spelling in where.lower():
            return name
    raise InputError(
        f"{where} does not say which collective it timed: keep the command line, or "
        f"put one of {', '.join(sorted(set(COLLECTIVES)))} in the file's name"
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
