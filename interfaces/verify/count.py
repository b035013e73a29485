"""Every configuration of a saved space, by loops over its axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .memory import RECIPES, Config, Peaks
from .saved import NotCoveredError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .rules import Checks, Rules
    from .saved import Labels, Saved


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What the loops found.

    ``least`` is the lowest peak of a legal configuration in bytes, None without one.
    """

    legal: int
    feasible: int
    least: int | None


class Space:
    """The configurations of a saved space, and their bytes."""

    def __init__(self, saved: Saved, rules: Rules) -> None:
        """Take the problem; nothing is counted yet."""
        self.saved, self.rules = saved, rules
        self._peaks = Peaks(saved.architecture, saved.training)

    def legal(self) -> Iterator[Labels]:
        """Yield every legal configuration that keeps the pins."""
        rules = self.rules
        for grid in self._grids():
            if not (_all(rules.groups(grid)) and _all(rules.widths(grid))):
                continue
            for shape in self._each(grid, "vpp", "schedule", "split"):
                if not _all(rules.pipeline(shape)):
                    continue
                for x in self._each(shape, "sp"):
                    if _all(rules.sequence(x)):
                        inner = self._each(x, "recompute", "sharding")
                        yield from (y for y in inner if _all(rules.rest(y)))

    def _grids(self) -> Iterator[Labels]:
        """Yield the degrees that divide the devices and the batch."""
        world, batch = self.saved.world, self.saved.training.global_batch
        for x in self._each({}, "tp", "pp", "cp"):
            dp, rest = divmod(world, x["tp"] * x["pp"] * x["cp"])
            if rest:
                continue
            for y in self._each(x | {"dp": dp}, "ep", "etp"):
                edp, rest = divmod(world, y["ep"] * y["etp"] * y["pp"])
                if rest:
                    continue
                for z in self._each(y | {"edp": edp}, "mbs"):
                    m, rest = divmod(batch, z["mbs"] * dp)
                    if not rest:
                        yield z | {"m": m}

    def _each(self, x: Labels, *names: str) -> Iterator[Labels]:
        if not names:
            yield x
            return
        for value in self.saved.pinned(names[0]):
            yield from self._each(x | {names[0]: value}, *names[1:])

    def peaks(self, x: Labels) -> tuple[int, ...]:
        """Return the peak of every pipeline rank of a legal configuration, in bytes.

        Raises
        ------
        NotCoveredError
            If the formulas are not written here.
        """
        if self.saved.training.optimizer not in RECIPES:
            raise NotCoveredError(f"the recipe {self.saved.training.optimizer}")
        names = set(x["recompute"].split("+")) - {"none"}
        stage = ("none", "zero-1").index(x["sharding"])
        same = ("tp", "pp", "vpp", "cp", "ep", "etp", "mbs", "split", "dp", "edp", "m")
        return self._peaks.of_ranks(
            Config(
                **{name: x[name] for name in same},
                sp=bool(x["sp"]),
                recompute=frozenset(names),
                stage=stage,
            )
        )

    def count(self) -> Counted:
        """Count what is legal, and what of it fits."""
        legal = feasible = 0
        least: int | None = None
        for x in self.legal():
            peak = max(self.peaks(x))
            legal, feasible = legal + 1, feasible + (peak <= self.saved.hbm_bytes)
            least = peak if least is None else min(least, peak)
        return Counted(legal=legal, feasible=feasible, least=least)


def _all(checks: Checks) -> bool:
    return all(holds for _, holds in checks)
