"""Bytes per unit for every recompute choice: sums of entries that solvers can take.

A tally holds whole numbers, one row per unit and one column per recompute choice of
the axis. Tallies are added and scaled as arrays; an expression is built at the end,
with one term per unit however many tensors went in.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..expr import Axis, Expr, Op, exact_div, product, table, total
from .entries import Recompute

if TYPE_CHECKING:
    from collections.abc import Callable

    from .entries import Entries
    from .units import Unit

Tally = npt.NDArray[np.int64]


class Board:
    """The units and recompute choices that tallies of one problem are written in.

    Parameters
    ----------
    recompute
        The recompute axis, or a constant in its place.
    """

    def __init__(self, recompute: Expr) -> None:
        """Read the choices off the axis."""
        self._axis = recompute
        if recompute.op is Op.AXIS:
            assert isinstance(recompute.data, Axis)
            self.codes: tuple[int, ...] = recompute.data.values
        else:
            assert recompute.constant is not None
            self.codes = (recompute.constant,)
        self._rows: dict[Unit, int] = {}
        self._sums: dict[str, Callable[[Recompute], Entries]] = {}

    def add(self, name: str, entries: Callable[[Recompute], Entries]) -> None:
        """Register a component; all must be known before the first is read."""
        assert "tallies" not in self.__dict__
        self._sums[name] = entries

    @cached_property
    def tallies(self) -> dict[str, Tally]:
        """Every component's tally, by name."""
        cells: dict[str, list[tuple[int, int, int]]] = {}
        for name, entries in self._sums.items():
            cells[name] = []
            for column, code in enumerate(self.codes):
                for entry in entries(Recompute(code)):
                    row = self._rows.setdefault(entry.unit, len(self._rows))
                    cells[name].append((row, column, entry.weight))
        shape = (len(self._rows), len(self.codes))
        done = {}
        for name, weights in cells.items():
            done[name] = np.zeros(shape, np.int64)
            for row, column, weight in weights:
                done[name][row, column] += weight
        return done

    def entries(self, name: str, code: int) -> Entries:
        """Return the entries of a component at one recompute choice."""
        return self._sums[name](Recompute(code))

    def zero(self) -> Tally:
        """Return an empty tally."""
        first = next(iter(self.tallies.values()))
        return np.zeros_like(first)

    def expression(self, tally: Tally) -> Expr:
        """Write a tally as an expression of the axes, in bytes."""
        tops: dict[Expr, list[Expr]] = {}
        for unit, row in self._rows.items():
            weights = tally[row]
            if weights.any():
                top = product((unit.numerator, self._choose(weights)))
                tops.setdefault(unit.divisor, []).append(top)
        return total(exact_div(total(t), divisor) for divisor, t in tops.items())

    def _choose(self, weights: npt.NDArray[np.int64]) -> Expr | int:
        """Look a weight up by recompute choice, or return it if all are equal."""
        if (weights == weights[0]).all():
            return int(weights[0])
        values = [0] * (self.codes[-1] + 1)
        for code, weight in zip(self.codes, weights.tolist(), strict=True):
            values[code] = weight
        return table(self._axis, values)


def undominated(tallies: list[Tally]) -> list[Tally]:
    """Drop tallies that another one equals or exceeds everywhere.

    All units are non-negative, so the dropped ones never decide a maximum.
    """
    kept: list[Tally] = []
    for tally in tallies:
        if any((tally <= other).all() for other in kept):
            continue
        kept = [other for other in kept if not (other <= tally).all()]
        kept.append(tally)
    return kept
