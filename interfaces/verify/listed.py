"""Configurations that a saved answer lists: legal, in the space, and their bytes."""

from __future__ import annotations

from itertools import pairwise
from math import isclose
from typing import TYPE_CHECKING, Any

from .saved import AXES, code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .count import Space
    from .saved import Document, Labels, Saved

DERIVED = ("dp", "edp", "m")
#: Sums of printed floats may differ in their last digits.
_CLOSE = 1e-9


def of_answers(saved: Saved, space: Space) -> Iterator[str]:
    """Yield what is wrong with the configurations of a plan or a projection."""
    answers = saved.document["answers"]
    if not answers:
        yield "an answer lists at least one configuration"
    for number, choice in enumerate(answers, start=1):
        for fault in _of_choice(saved, space, choice):
            yield f"answer {number}: {fault}"
    times = [choice["projection"]["step_time_s"] for choice in answers]
    if any(a > b for a, b in pairwise(times)):
        yield "answers are listed the fastest first"
    shown = [tuple(sorted(choice["layout"].items())) for choice in answers]
    if len(set(shown)) < len(shown):
        yield "no configuration is listed twice"


def _of_choice(saved: Saved, space: Space, choice: Document) -> Iterator[str]:
    layout, memory = choice["layout"], choice["memory"]
    faults = tuple(of_layout(saved, space, layout))
    yield from faults
    if not faults:
        peaks = list(space.peaks(layout))
        if memory["per_rank"] != peaks:
            yield f"the peaks of the ranks are {peaks} bytes"
        if memory["peak_bytes"] != max(peaks):
            yield f"the peak is {max(peaks):,} bytes"
        if max(peaks) > saved.hbm_bytes:
            yield f"it does not fit: {max(peaks):,} bytes of {saved.hbm_bytes:,}"
    yield from _projection(saved, choice["projection"])


def of_layout(saved: Saved, space: Space, layout: Labels) -> Iterator[str]:
    """Yield why a layout is no legal configuration of the space."""
    if set(layout) != {*AXES, *DERIVED}:
        yield "a layout has just the axes of its space and dp, edp, m"
        return
    for name in AXES:
        values = saved.pinned(name)
        if not any(_same(v, layout[name]) for v in values):
            yield f"{name}={layout[name]} is no value of the space"
            return
    for name in DERIVED:
        if isinstance(layout[name], bool) or not isinstance(layout[name], int):
            yield f"{name} is a whole number"
            return
    for rule in space.rules.broken(layout):
        yield f"it breaks {rule}"


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def _projection(saved: Saved, found: Document) -> Iterator[str]:
    """Figures of one projection agree with each other; they are not projected again."""
    seconds, training = found["step_time_s"], saved.training
    tokens = training.global_batch * training.seq_len
    if not isclose(found["tokens_per_s_per_gpu"] * seconds * saved.world, tokens):
        yield "tokens/s/GPU times devices and step time are the tokens of a step"
    low, high = found["band"]
    if not 0 < low <= seconds <= high:
        yield "the step time lies in its band"
    parts = sum(found["breakdown"].values())
    if not isclose(parts, seconds, rel_tol=_CLOSE):
        yield "the parts of the step time add up to it"
    if not (0 <= found["bubble_fraction"] < 1 and 0 < found["mfu"] <= 1):
        yield "bubble and MFU are fractions"


def of_rows(saved: Saved, space: Space, *, every: bool) -> Iterator[str]:
    """Yield what is wrong with the rows of a set.

    With ``every`` they are compared with the first ones that the loops find.
    """
    rows = saved.document["rows"]
    rules_only = saved.document["rules_only"]
    for number, row in enumerate(rows, start=1):
        faults = tuple(of_layout(saved, space, row["layout"]))
        yield from (f"row {number}: {fault}" for fault in faults)
        if faults:
            continue
        peak = None if rules_only else max(space.peaks(row["layout"]))
        if row["peak_bytes"] != peak:
            yield f"row {number}: the peak is {peak} bytes"
        elif peak is not None and peak > saved.hbm_bytes:
            yield f"row {number}: it does not fit"
    if every:
        first = sorted(map(key, members(saved, space)))[: len(rows)]
        if [key(row["layout"]) for row in rows] != first:
            yield "the rows are not the first of the set, in order"


def members(saved: Saved, space: Space) -> Iterator[Labels]:
    """Yield the configurations that a set holds."""
    rules_only = saved.document["rules_only"]
    for x in space.legal():
        if rules_only or max(space.peaks(x)) <= saved.hbm_bytes:
            yield x


#: Axes in the order that sorts a set: those of a skeleton, then recompute, sharding.
ORDER = (*(n for n in AXES if n not in ("recompute", "sharding")), *DERIVED)


def key(x: Labels) -> tuple[int, ...]:
    """Return what configurations are sorted by."""
    return tuple(code(name, x[name]) for name in (*ORDER, "recompute", "sharding"))
