"""Every case that DeepSpeed and Accelerate are asked: families, and draws."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import other_accelerate
import other_deepspeed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Maker = Callable[[random.Random], dict[str, Any]]

FAMILIES: dict[str, dict[str, tuple[Maker, Maker]]] = {
    "deepspeed": other_deepspeed.FAMILIES,
    "accelerate": other_accelerate.FAMILIES,
}
DRAWS: dict[str, Maker] = {
    "deepspeed": other_deepspeed.draw,
    "accelerate": other_accelerate.draw,
}
#: Seeds tried for one case that differs from those before it.
_TRIES = 100


def _distinct(maker: Maker, kind: str, seed: str, number: int) -> Iterator[Any]:
    seen: set[str] = set()
    for at in range(number * _TRIES):
        case = maker(random.Random(f"{seed}/{kind}/{at}"))
        text = json.dumps(case, sort_keys=True)
        if text not in seen:
            seen.add(text)
            yield {"kind": kind, **case}
        if len(seen) == number:
            return


def other_cases(
    dialect: str, seed: int, families: int, drawn: int
) -> Iterator[dict[str, Any]]:
    """Yield families of every rule of a dialect, then draws.

    ``kind`` is the rule's id, with `` ok`` behind it on the legal side, or ``drawn``.
    """
    for rule, makers in FAMILIES[dialect].items():
        for kind, maker in zip((rule, f"{rule} ok"), makers, strict=True):
            yield from _distinct(maker, kind, f"{dialect}/{seed}", families)
    yield from _distinct(DRAWS[dialect], "drawn", f"{dialect}/{seed}", drawn)
