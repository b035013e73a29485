"""A whole table: settings row by row, and the rules that compare rows.

Newer releases of a configuration replace older ones; the same figure twice counts
once; the same configuration and release with another figure is contradicted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .rules import Unstated
from .setting import setting

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from .row import Row
    from .setting import Setting

#: Figures of one configuration and release that differ by more contradict each other.
_SPREAD = 1.2


@dataclass(frozen=True)
class Entry:
    """A row with its setting, or with the rule that leaves it without one."""

    row: Row
    setting: Setting | None
    excluded: tuple[str, ...]


def entries(rows: Iterable[Row]) -> list[Entry]:
    """Return every row of a table with its setting and the exclusions that hold."""
    found = []
    for row in rows:
        try:
            one = setting(row)
        except Unstated as error:
            found.append(Entry(row, None, (error.rule,)))
            continue
        except Exception:
            # A row of an unknown kind may say anything; it must not end the others.
            found.append(Entry(row, None, ("unreadable",)))
            continue
        found.append(Entry(row, one, one.excluded))
    return _compared(found)


def identity(one: Setting) -> Hashable:
    """Return what two runs of the same configuration have in common."""
    problem = one.problem
    words = re.sub(r"\s+", " ", one.row.words("extras"))
    if re.search(r"release|\bbf16\b|\bfp8\b", words):
        words = ""  # a title that repeats the precision
    return (
        one.stack,
        problem.architecture.layers,
        problem.architecture.hidden,
        problem.architecture.vocab,
        problem.architecture.mtp_layers,
        problem.cluster.device.name,
        problem.cluster.world_size,
        problem.training,
        one.layout,
        one.run,
        words,
    )


def _compared(found: list[Entry]) -> list[Entry]:
    same: dict[Hashable, list[int]] = defaultdict(list)
    for index, entry in enumerate(found):
        if entry.setting and entry.setting.measured.step_time_s and not entry.excluded:
            same[identity(entry.setting)].append(index)
    result = list(found)
    for group in same.values():
        for index, rule in _outcome(found, group).items():
            old = result[index]
            result[index] = replace(old, excluded=(*old.excluded, rule))
    return result


def _outcome(found: list[Entry], group: list[int]) -> dict[int, str]:
    """Return the rule that holds for each row of one configuration, if one does."""
    ages = {index: _age(found[index], index) for index in group}
    newest = max(ages.values())
    outcome = {i: "superseded" for i, age in ages.items() if age < newest}
    kept = [i for i in group if i not in outcome]
    times = [_time(found[i]) for i in kept]
    if max(times) > _SPREAD * min(times):
        return outcome | dict.fromkeys(kept, "contradicted")
    return outcome | {
        index: "repeated"
        for place, index in enumerate(kept)
        if any(abs(times[place] / t - 1) < 1e-3 for t in times[:place])
    }


def _time(entry: Entry) -> float:
    assert entry.setting is not None
    time = entry.setting.measured.step_time_s
    assert time is not None
    return time


def _age(entry: Entry, index: int) -> tuple[str, int]:
    """Order releases: containers by number, dated documents by date, then place."""
    assert entry.setting is not None
    release = entry.setting.release
    return release, index if re.match(r"20\d\d-", release) else 0
