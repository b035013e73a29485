"""What a saved answer says of all configurations: counts, optimum, infeasibility."""

from __future__ import annotations

from math import isclose
from typing import TYPE_CHECKING

from .listed import members
from .saved import written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .count import Counted, Space
    from .saved import Document, Saved

MEMORY = "memory"


def of_certificate(saved: Saved, space: Space, *, count: bool) -> Iterator[str]:
    """Yield what is wrong with a certificate."""
    proof, answers = saved.document["certificate"], saved.document["answers"]
    first = answers[0]["projection"]["step_time_s"]
    if proof["bound"] > first * (1 + 1e-12):
        yield "the bound is at most the first step time"
    if not isclose(proof["gap"], (first - proof["bound"]) / first, abs_tol=1e-12):
        yield "the gap is (step time - bound) / step time of the first answer"
    proven = {"complete": True, "optimal": True, "bounded": False}[proof["status"]]
    if proven != (proof["gap"] <= 0):
        yield f"a gap of {proof['gap']} is not {proof['status']}"
    if not isinstance(proof["calibrated"], bool):
        yield "calibrated is true or false"
    if len(answers) > proof["feasible_count"]:
        yield "more configurations are listed than are feasible"
    if count:
        found = space.count()
        yield from _counts(found, proof["legal_count"], proof["feasible_count"])


def _counts(found: Counted, legal: int, feasible: int) -> Iterator[str]:
    if legal != found.legal:
        yield f"{found.legal:,} configurations are legal, not {legal:,}"
    if feasible != found.feasible:
        yield f"{found.feasible:,} configurations fit, not {feasible:,}"


def of_set(saved: Saved, space: Space) -> Iterator[str]:
    """Yield what is wrong with the counts of a set."""
    document = saved.document
    legal = sum(1 for _ in space.legal())
    number = sum(1 for _ in members(saved, space))
    if document["legal_count"] != legal:
        yield f"{legal:,} configurations are legal"
    if document["count"] != number:
        yield f"the set has {number:,} configurations"


def of_infeasible(saved: Saved, space: Space, *, count: bool) -> Iterator[str]:
    """Yield what is wrong with a proof that nothing is feasible."""
    proof = saved.document["infeasible"]
    if saved.document["answers"] != []:
        yield "nothing is feasible, so no configuration is listed"
    ways = [frozenset(c["rules"]) for c in proof["corrections"]]
    conflicts = [frozenset(c) for c in proof["conflicts"]]
    if not all(ways) or any(a <= b for a, b in _pairs(ways)):
        yield "corrections are minimal, and not empty"
    elif set(conflicts) != set(_hitting(ways)):
        yield "conflicts are the smallest sets that meet every correction"
    if {c["rule"] for c in proof["clashes"]} not in map(set, conflicts):
        yield "the clashes are a conflict"
    for number, correction in enumerate(proof["corrections"], start=1):
        for fault in _of_correction(saved, space, correction):
            yield f"correction {number}: {fault}"
    yield from _of_nearest(saved, proof)
    if count:
        yield from _of_none(saved, space, proof)


def _pairs(sets: list[frozenset[str]]) -> Iterator[tuple[frozenset[str], ...]]:
    for i, a in enumerate(sets):
        yield from ((a, b) for j, b in enumerate(sets) if i != j)


def _hitting(sets: list[frozenset[str]]) -> list[frozenset[str]]:
    """Return the smallest sets that meet each one, correction by correction."""
    found: list[frozenset[str]] = [frozenset()]
    for one in sets:
        grown = {f if f & one else f | {name} for f in found for name in one}
        found = [f for f in grown if not any(g < f for g in grown)]
    return found


def _of_correction(saved: Saved, space: Space, correction: Document) -> Iterator[str]:
    """The witness breaks the named constraints, and lacks the bytes, if legal."""
    layout, rules = correction["layout"], set(correction["rules"])
    given_up = {
        f"pin:{name}"
        for name, shown in saved.pins.items()
        if written(layout[name]) not in shown
    }
    broken = {*space.rules.broken(layout), *given_up}
    if broken != rules - {MEMORY}:
        yield f"its configuration breaks {', '.join(sorted(broken)) or 'no rule'}"
    elif not broken - given_up:
        lacking = max(max(space.peaks(layout)) - saved.hbm_bytes, 0)
        if correction["missing_bytes"] != lacking:
            yield f"its configuration lacks {lacking:,} bytes"
    missing = correction["missing_bytes"]
    if missing < 0 or (missing > 0) != (MEMORY in rules):
        yield "bytes are missing just where memory is among the rules"


def _of_nearest(saved: Saved, proof: Document) -> Iterator[str]:
    alone = [c for c in proof["corrections"] if c["rules"] == [MEMORY]]
    missing = alone[0]["missing_bytes"] if alone else None
    nearest = alone[0]["layout"] if alone else None
    if proof["missing_bytes"] != missing or proof["nearest"] != nearest:
        yield "what is missing is that of the correction by memory alone"


def _of_none(saved: Saved, space: Space, proof: Document) -> Iterator[str]:
    found = space.count()
    yield from _counts(found, proof["legal_count"], 0)
    least = None if found.least is None else found.least - saved.hbm_bytes
    if proof["missing_bytes"] != least:
        yield f"the least that any legal configuration lacks is {least} bytes"
