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

from ..expr import Axis, Expr, Op, exact_div, linear_form, product, table, total
from .entries import Recompute

if TYPE_CHECKING:
    from collections.abc import Callable

    from .entries import Entries
    from .units import Unit

Tally = npt.NDArray[np.int64]
Linear = tuple[int, tuple[tuple[Expr, int], ...]]


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
        self._terms: dict[tuple[Unit, bytes], Linear] = {}
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
        tops: dict[Expr, dict[Expr, int]] = {}
        constants: dict[Expr, int] = {}
        divisors = np.gcd.reduce(tally, axis=1)
        reduced = tally // np.maximum(divisors, 1)[:, None]
        rows = zip(self._rows, divisors.tolist(), reduced, strict=True)
        for unit, common, weights in rows:
            if not common:
                continue
            constant, terms = self._term(unit, weights)
            top = tops.setdefault(unit.divisor, {})
            for node, weight in terms:
                top[node] = top.get(node, 0) + weight * common
            if constant:
                offset = constants.get(unit.divisor, 0)
                constants[unit.divisor] = offset + constant * common
        return total(
            exact_div(_weighted(constants.get(divisor, 0), top), divisor)
            for divisor, top in tops.items()
        )

    def _term(self, unit: Unit, weights: npt.NDArray[np.int64]) -> Linear:
        """Return a unit's numerator times its weight by recompute choice.

        Ranks hold multiples of the same few weights, so that with their common
        divisor taken out most terms are found here.
        """
        key = (unit, weights.tobytes())
        if key not in self._terms:
            self._terms[key] = _times(unit.numerator, self._choose(weights))
        return self._terms[key]

    def _choose(self, weights: npt.NDArray[np.int64]) -> Expr | int:
        """Look a weight up by recompute choice, or return it if all are equal."""
        if (weights == weights[0]).all():
            return int(weights[0])
        values = [0] * (self.codes[-1] + 1)
        for code, weight in zip(self.codes, weights.tolist(), strict=True):
            values[code] = weight
        return table(self._axis, values)


def _times(numerator: Expr, factor: Expr | int) -> Linear:
    """Multiply term by term, as the factor is a table or a number, never a sum."""
    constant, terms = linear_form(numerator)
    if isinstance(factor, int):
        return constant * factor, tuple((node, w * factor) for node, w in terms)
    found = [(product((node, factor)), weight) for node, weight in terms]
    if constant:
        found.append((factor, constant))
    return 0, tuple(found)


def _weighted(constant: int, weights: dict[Expr, int]) -> Expr:
    """Sum nodes that are no sums themselves, in one step as ranks have many."""
    kept = sorted(weights.items(), key=lambda pair: pair[0].serial)
    if not kept or (len(kept) == 1 and kept[0][1] == 1 and constant == 0):
        return total((constant, *(node for node, _ in kept)))

    def bounds() -> tuple[int, int]:
        # All weights are bytes, so that no product changes the order of its ends.
        low = sum(node.lo * weight for node, weight in kept)
        return constant + low, constant + sum(n.hi * w for n, w in kept)

    nodes, factors = zip(*kept, strict=True)
    return Expr.make(Op.SUM, nodes, (constant, factors), bounds)


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
