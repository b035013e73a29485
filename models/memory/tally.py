"""Bytes per unit for every choice: sums of entries that solvers can take.

A tally holds whole numbers, one row per unit and one column per choice of
recomputation, precision and offload. Tallies are added and scaled as arrays; an
expression is built at the end, with one term per unit however many tensors went in.
"""

from __future__ import annotations

from functools import cached_property
from itertools import product as product_of
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ..expr import (
    Axis,
    Expr,
    Op,
    as_expr,
    exact_div,
    linear_form,
    product,
    table,
    total,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..layout import Dims
    from .entries import Entries
    from .units import Unit

Tally = npt.NDArray[np.int64]
Linear = tuple[int, tuple[tuple[Expr, int], ...]]


class Choice(NamedTuple):
    """One column of a tally: a recompute choice, a precision and an offload code."""

    recompute: int
    precision: int
    offload: int


def _domain(node: Expr) -> tuple[int, ...]:
    if node.op is Op.AXIS:
        assert isinstance(node.data, Axis)
        return node.data.values
    assert node.constant is not None
    return (node.constant,)


class Board:
    """The units and choices that tallies of one problem are written in.

    Parameters
    ----------
    dims
        The axes, of which recompute, precision and offload may be open.
    """

    def __init__(self, dims: Dims) -> None:
        """Read the choices off the axes."""
        self._axes = (dims.recompute, dims.precision, dims.offload)
        self._domains = tuple(_domain(axis) for axis in self._axes)
        self.codes: tuple[int, ...] = self._domains[0]
        self.choices = tuple(Choice(*c) for c in product_of(*self._domains))
        self._rows: dict[Unit, int] = {}
        self._terms: dict[tuple[Unit, bytes], Linear] = {}
        self._sums: dict[str, Callable[[Choice], Entries]] = {}

    def add(self, name: str, entries: Callable[[Choice], Entries]) -> None:
        """Register a component; all must be known before the first is read."""
        assert "tallies" not in self.__dict__
        self._sums[name] = entries

    @cached_property
    def tallies(self) -> dict[str, Tally]:
        """Every component's tally, by name."""
        cells: dict[str, list[tuple[int, int, int]]] = {}
        for name, entries in self._sums.items():
            cells[name] = []
            for column, choice in enumerate(self.choices):
                for entry in entries(choice):
                    row = self._rows.setdefault(entry.unit, len(self._rows))
                    cells[name].append((row, column, entry.weight))
        shape = (len(self._rows), len(self.choices))
        done = {}
        for name, weights in cells.items():
            done[name] = np.zeros(shape, np.int64)
            for row, column, weight in weights:
                done[name][row, column] += weight
        return done

    def entries(self, name: str, code: int, *others: int) -> Entries:
        """Return the entries of a component at one choice.

        Parameters
        ----------
        name
            The component.
        code
            The recompute choice.
        others
            Precision and offload; each axis's first value if not given.
        """
        rest = others or tuple(domain[0] for domain in self._domains[1:])
        return self._sums[name](Choice(code, *rest))

    def choice_at(self, point: Mapping[str, int]) -> Choice:
        """Return the choice of one configuration."""
        pairs = zip(Choice._fields, self._axes, strict=True)
        found = (point[n] if a.constant is None else a.constant for n, a in pairs)
        return Choice(*found)

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
        """Return a unit's numerator times its weight by choice.

        Ranks hold multiples of the same few weights, so that with their common
        divisor taken out most terms are found here.
        """
        key = (unit, weights.tobytes())
        if key not in self._terms:
            self._terms[key] = _times(unit.numerator, self._choose(weights))
        return self._terms[key]

    def _choose(self, weights: npt.NDArray[np.int64]) -> Expr | int:
        """Look a weight up by choice, or return it if all are equal."""
        if (weights == weights[0]).all():
            return int(weights[0])
        cells = weights.reshape([len(domain) for domain in self._domains])
        matter = [
            axis for axis in range(cells.ndim) if (np.diff(cells, axis=axis) != 0).any()
        ]
        index: Expr = as_expr(0)
        sizes = []
        for axis in matter:
            size = self._domains[axis][-1] + 1
            index = index * size + self._axes[axis]
            sizes.append(size)
        values = np.zeros(sizes, np.int64)
        chosen = tuple(
            slice(None) if axis in matter else 0 for axis in range(cells.ndim)
        )
        values[np.ix_(*(self._domains[axis] for axis in matter))] = cells[chosen]
        return table(index, values.ravel().tolist())


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
        # Units that hold where a condition does not have terms with a minus.
        ends = [
            (n.lo * w, n.hi * w) if w > 0 else (n.hi * w, n.lo * w) for n, w in kept
        ]
        return constant + sum(e[0] for e in ends), constant + sum(e[1] for e in ends)

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
