"""Raw points: the product of the axes, before any rule."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from ...models.expr import Evaluator, axes
from ...models.layout import AXES, DERIVED
from ..vector import derived, derived_equalities

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...models.expr import Array
    from ..domains import Domains

#: Axes in the order in which they are joined: those first that decide how many
#: devices and sequences there are.
_FIRST = ("pp", "tp", "cp", "ep", "etp", "gbs", "mbs")
_BLOCK = 1 << 21


def inner_grid(domains: Domains, values: Mapping[str, tuple[int, ...]]) -> Grid:
    """Return the codes of the inner axes, all values."""
    return {n: np.asarray(values[n], np.int64) for n in domains.inner}


def raw_rows(domains: Domains, values: Mapping[str, tuple[int, ...]]) -> Grid:
    """Return the raw product of the skeleton axes, with derived axes.

    Points whose degrees do not multiply to the devices and the batch are no
    configurations of this cluster, so they are left out, unless there are no others;
    then derived axes are rounded down, and are at least 1.
    """
    rows = _product(domains, values, whole=True)
    return rows if len(rows["pp"]) else _product(domains, values, whole=False)


def whole_rows(domains: Domains, values: Mapping[str, tuple[int, ...]]) -> Grid:
    """Return the rows whose degrees multiply to the devices and the batch."""
    return _product(domains, values, whole=True)


def _product(
    domains: Domains, values: Mapping[str, tuple[int, ...]], *, whole: bool
) -> Grid:
    rest = [n for n in AXES if n not in (*domains.inner, *_FIRST)]
    equations = {e: {a.name for a in axes(e)} for e in derived_equalities(domains)}
    rows: Grid = {}
    for name in (*_FIRST, *rest):
        codes = np.asarray(values[name], np.int64)
        length = len(next(iter(rows.values()))) if rows else 1
        rows = {n: np.repeat(c, len(codes)) for n, c in rows.items()}
        rows[name] = np.tile(codes, length)
        for other in DERIVED:
            # A derived axis is there as soon as what it follows from is.
            with suppress(KeyError):
                if other not in rows:
                    rows[other] = np.maximum(derived(other, domains, rows), 1)
        ready = [e for e, names in equations.items() if names <= set(rows)]
        for equation in ready if whole else ():
            keep = np.broadcast_to(Evaluator(rows)(equation) != 0, rows[name].shape)
            rows = {n: c[keep] for n, c in rows.items()}
            del equations[equation]
    return rows


def blocks(rows: Grid, inner: Grid) -> Iterator[Grid]:
    """Cut rows into parts of a bounded number of points."""
    choices = int(np.prod([len(codes) for codes in inner.values()]))
    size = max(_BLOCK // choices, 1)
    for start in range(0, len(rows["pp"]), size):
        yield {n: c[start : start + size] for n, c in rows.items()}


Grid = dict[str, "Array"]
