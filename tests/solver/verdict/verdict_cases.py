"""Every case that is asked: two families a rule, and the draws over all axes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import verdict_families_dispatch
import verdict_families_divisibility
import verdict_families_experts
import verdict_families_graphs
import verdict_families_groups
import verdict_families_layouts
import verdict_families_memory
import verdict_families_overlap
import verdict_families_pipeline
import verdict_families_precision
from verdict_draws import draw
from verdict_models import PLAIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verdict_makers import Family, Maker
    from verdict_models import Case

FAMILIES: tuple[Family, ...] = (
    *verdict_families_groups.FAMILIES,
    *verdict_families_divisibility.FAMILIES,
    *verdict_families_pipeline.FAMILIES,
    *verdict_families_layouts.FAMILIES,
    *verdict_families_experts.FAMILIES,
    *verdict_families_dispatch.FAMILIES,
    *verdict_families_memory.FAMILIES,
    *verdict_families_overlap.FAMILIES,
    *verdict_families_precision.FAMILIES,
    *verdict_families_graphs.FAMILIES,
)
#: Seeds tried for one case that differs from those before it.
_TRIES = 50


def _distinct(maker: Maker, name: str, number: int) -> Iterator[Case]:
    seen: set[str] = set()
    for at in range(number * _TRIES):
        case = maker(random.Random(f"{name}/{at}"))
        if repr(case) not in seen:
            seen.add(repr(case))
            yield case | {"id": f"{name}/{at}"}
        if len(seen) == number:
            return


def family_cases(seed: int, number: int) -> Iterator[Case]:
    """Yield so many illegal and so many legal cases of every rule.

    Their ``kind`` is the rule's id, with ``ok`` behind it for the legal ones.
    """
    for family in FAMILIES:
        for kind, maker in (("", family.illegal), (" ok", family.legal)):
            name = f"{seed}/{family.rule}{kind}"
            for case in _distinct(maker, name, number):
                yield case | {"kind": family.rule + kind}


def drawn_cases(seed: int, number: int) -> Iterator[Case]:
    """Yield so many cases drawn over all axes."""
    for case in _distinct(draw, f"{seed}/drawn", number):
        yield case | {"kind": "drawn"}


def shortened(case: Case) -> Case:
    """Leave out what a plain launch has too."""
    changed = {k: v for k, v in case["config"].items() if v != PLAIN.get(k, ...)}
    return case | {"config": changed}
