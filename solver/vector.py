"""The fast lane: complete enumeration by int64 arrays.

Axes are joined one at a time; each rule is applied as soon as all its axes are
there, so that the raw product is never built. What is left are the *skeletons*,
rows of all axes but the inner ones, and beside them the grid of inner choices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..models.errors import InputError
from ..models.expr import Array, Evaluator, axes, equals
from .inner import joint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.expr import Expr
    from .domains import Domains

Mask = npt.NDArray[np.bool_]
_ORDER = ("pp", "tp", "cp", "dp", "vpp", "schedule", "split", "mbs", "gbs", "m")
_REST = ("sp", "ep", "etp", "edp")
#: Points that are held at once at most; larger spaces are enumerated in blocks.
_MOST = 400_000_000


@dataclass(frozen=True, kw_only=True)
class Points:
    """Legal points as skeletons by inner choices, never as rows.

    Attributes
    ----------
    skeletons
        For each axis but the inner ones its codes, shape [n].
    inner
        For each inner axis its codes, shape [k] of that axis.
    legal
        Which combinations break no rule, shape [n, k of each inner axis in turn].
    """

    skeletons: Mapping[str, Array]
    inner: Mapping[str, Array]
    legal: Mask

    @property
    def count(self) -> int:
        """Number of legal points."""
        return int(self.legal.sum())

    def grid(self) -> dict[str, Array]:
        """Return every axis with a dimension of its own, so that they broadcast."""
        return spread(self.skeletons, self.inner)

    def columns(self, mask: Mask | None = None) -> dict[str, Array]:
        """Return one row for each point of a mask (all legal ones if None)."""
        rows, *cells = np.nonzero(self.legal if mask is None else mask)
        table = {name: column[rows] for name, column in self.skeletons.items()}
        pairs = zip(self.inner.items(), cells, strict=True)
        return table | {name: codes[cell] for (name, codes), cell in pairs}


def spread(
    skeletons: Mapping[str, Array], inner: Mapping[str, Array]
) -> dict[str, Array]:
    """Give skeletons the first dimension and each inner axis one of its own."""
    depth = len(inner)
    table = {name: c.reshape(-1, *(1,) * depth) for name, c in skeletons.items()}
    for i, (name, codes) in enumerate(inner.items()):
        table[name] = codes.reshape(*(1,) * (i + 1), -1, *(1,) * (depth - i - 1))
    return table


def derived(name: str, domains: Domains, table: Mapping[str, Array]) -> Array:
    """Return a derived axis, rounded down; the rules drop what is not whole."""
    problem = domains.problem
    number: int | Array
    factors, number = {
        "dp": (("tp", "pp", "cp"), problem.cluster.world_size),
        "edp": (("etp", "ep", "pp"), problem.cluster.world_size),
        "m": (("mbs", "dp"), _batch(domains, table)),
    }[name]
    divisor = np.ones(1, np.int64)
    for factor in factors:
        divisor = divisor * table[factor]
    return np.asarray(number // np.maximum(divisor, 1))


def _batch(domains: Domains, table: Mapping[str, Array]) -> int | Array:
    return table["gbs"] if "gbs" in table else domains.values["gbs"][0]


def legal_points(domains: Domains, skip: frozenset[str] = frozenset()) -> Points:
    """Return every legal point of a problem's space.

    Parameters
    ----------
    domains
        The problem over its space.
    skip
        Ids of rules to leave out, for explanations.
    """
    table, waiting = skeletons(domains, skip)
    return _inner_grid(domains, table, waiting)


def skeletons(
    domains: Domains, skip: frozenset[str] = frozenset()
) -> tuple[dict[str, Array], list[Expr]]:
    """Return the skeletons that their rules allow, and the rules with inner axes.

    Parameters
    ----------
    domains
        The problem over its space.
    skip
        Ids of rules to leave out, for explanations.
    """
    waiting = [body for rule, body in domains.rules if rule.id not in skip]
    table: dict[str, Array] = {}
    for name in (*_ORDER, *_REST):
        if name == "gbs":
            _join_batches(domains, table)
        else:
            _join(name, domains, table)
        waiting = _filter(table, waiting)
    return table, waiting


def _join_batches(domains: Domains, table: dict[str, Array]) -> None:
    """Join the global batches that a row's ``mbs * dp`` divides, and no others."""
    batches = np.asarray(domains.values["gbs"], np.int64)
    if len(batches) == 1:
        return
    unit = table["mbs"] * table["dp"]
    distinct, number = np.unique(unit, return_inverse=True)
    fitting = [batches[batches % u == 0] for u in distinct]
    repeat = np.asarray([len(f) for f in fitting], np.int64)[number]
    found = [fitting[i] for i in number]
    for name in table:
        table[name] = np.repeat(table[name], repeat)
    table["gbs"] = np.concatenate(found) if found else batches[:0]


def _join(name: str, domains: Domains, table: dict[str, Array]) -> None:
    if name in ("dp", "edp", "m"):
        table[name] = derived(name, domains, table)
        domain = np.asarray(domains.values[name], np.int64)
        keep = np.isin(table[name], domain)
        _keep(table, keep)
        return
    values = np.asarray(domains.values[name], np.int64)
    length = len(next(iter(table.values()))) if table else 1
    for other in table:
        table[other] = np.repeat(table[other], len(values))
    table[name] = np.tile(values, length)


def _filter(table: dict[str, Array], waiting: list[Expr]) -> list[Expr]:
    """Apply the rules whose axes are all there; return the others."""
    ready = [b for b in waiting if all(a.name in table for a in axes(b))]
    for body in ready:
        _keep(table, Evaluator(table)(body) != 0)
    return [b for b in waiting if b not in set(ready)]


def _keep(table: dict[str, Array], keep: Mask) -> None:
    if not np.all(keep):
        keep = np.broadcast_to(keep, next(iter(table.values())).shape)
        for name in table:
            table[name] = table[name][keep]


def _inner_grid(
    domains: Domains, table: Mapping[str, Array], waiting: list[Expr]
) -> Points:
    inner = {n: np.asarray(domains.values[n], np.int64) for n in domains.inner}
    for name in domains.inner:
        alone = [b for b in waiting if [a.name for a in axes(b)] == [name]]
        for body in alone:
            inner[name] = inner[name][Evaluator(inner)(body) != 0]
        waiting = [b for b in waiting if b not in alone]
    shape = (len(table["pp"]), *(len(codes) for codes in inner.values()))
    if math.prod(shape) > _MOST:
        raise InputError(
            f"a space that is held whole has at most {_MOST:,} points after its "
            f"skeletons are joined, got {math.prod(shape):,} in space "
            f"{domains.space.label}; enumerate it, or pin or leave out some axes"
        )
    legal = joint(waiting, spread(table, inner), shape).copy()
    return Points(skeletons=dict(table), inner=inner, legal=legal)


def derived_equalities(domains: Domains) -> tuple[Expr, ...]:
    """Return the equations that define the derived axes."""
    d, problem = domains.dims, domains.problem
    world = problem.cluster.world_size
    return (
        equals(d.tp * d.pp * d.cp * d.dp, world),
        equals(d.etp * d.ep * d.pp * d.edp, world),
        equals(d.mbs * d.dp * d.m, d.gbs),
    )


def raw_count(domains: Domains) -> int:
    """Return the size of the product of the decided axes."""
    size = 1
    for name in (*_ORDER, *_REST, *domains.inner):
        if name not in ("dp", "edp", "m"):
            size *= len(domains.values[name])
    return size
