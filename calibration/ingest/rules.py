"""The rules by which rows are dropped and files refused; every use is counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Rules by name, as they are printed.
RULES = {
    "size": "a size is below 1 (m = 0 rows of some tables) or not a number",
    "dtype": "the number format is not one of training, or not known",
    "time": "the time is not a positive number",
    "impossible": "more than 1.1 times the peak FLOP/s or bandwidth would be needed",
    "device": "the row names another device than the file",
    "mixed": "queries and cached keys have different number formats",
    "window": "attention over a window, which is no causal attention",
    "routing": "tokens are routed unevenly on purpose",
    "kernel": "another kernel of the same table has more rows",
    "shape": "the event names no shapes",
    "kind": "the event is no matrix product and no collective",
}


@dataclass
class Drops:
    """What a reader dropped: number of rows by rule."""

    counts: dict[str, int] = field(default_factory=dict)

    def keep(self, good: NDArray[np.bool_], rule: str, alive: NDArray[np.bool_]) -> Any:
        """Return the rows alive that are also good, and count the others.

        Parameters
        ----------
        good
            Which rows obey the rule.
        rule
            Its name in RULES.
        alive
            Which rows earlier rules left.
        """
        self.add(rule, int((alive & ~good).sum()))
        return alive & good

    def add(self, rule: str, count: int) -> None:
        """Count rows dropped by a rule."""
        assert rule in RULES
        if count:
            self.counts[rule] = self.counts.get(rule, 0) + count


#: Times of large kernels lie within this many times the roofline; else the unit of
#: the file is not the expected one.
_SLOWEST = 300.0


def check_units(seconds: Any, roofline: Any, large: Any, where: str) -> None:
    """Refuse a table whose times are in another unit than expected.

    Raises
    ------
    InputError
        If the median large kernel beats the roofline twice, or needs hundreds of it.
    """
    if not large.any():
        return
    ratio = float(np.median(seconds[large] / roofline[large]))
    if not 0.5 <= ratio <= _SLOWEST:
        raise InputError(
            f"times of {where} are {ratio:.3g} times the roofline in the median, so "
            "they are not in the expected unit; convert them (milliseconds in kernel "
            "tables, microseconds in DeepEP tables and nccl-tests) and try again"
        )
