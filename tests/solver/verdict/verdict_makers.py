"""How a family is written: a legal base, and what is changed in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verdict_bases import Case, draw_base

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    Maker = Callable[[random.Random], Case]


@dataclass(frozen=True)
class Family:
    """What a rule refuses, and what lies just beside it and is legal."""

    rule: str
    illegal: Maker
    legal: Maker


def made(
    wants: dict[str, Any] | None = None,
    *,
    arch: dict[str, Any] | None = None,
    case: dict[str, Any] | None = None,
    then: Callable[[random.Random, Case], None] | None = None,
    **config: Any,
) -> Maker:
    """Return a maker of cases.

    A tuple among the changes is a choice; a function is called with the generator
    and the case as it stands. ``then`` changes the whole case at the end.
    """

    def make(rng: random.Random) -> Case:
        found = draw_base(rng, **(wants or {}))
        parts = ((arch, found["arch"]), (case, found), (config, found["config"]))
        for changes, place in parts:
            for name, value in (changes or {}).items():
                chosen = rng.choice(value) if isinstance(value, tuple) else value
                place[name] = chosen(rng, found) if callable(chosen) else chosen
        if then is not None:
            then(rng, found)
        return found

    return make


def any_of(*makers: Maker) -> Maker:
    """Return a maker that takes one of several."""
    return lambda rng: rng.choice(makers)(rng)
