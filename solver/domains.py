"""The values every axis can take in one problem, derived axes included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..models.errors import InputError, unknown_name
from ..models.layout import AXES, DECIDED, DERIVED, OPTIONAL, OVERLAPS, Dims
from .axis_options import axis_options
from .rules import ALL_RULES, Facts, Rule, Structures, rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..models.expr import Expr
    from ..models.problem import Problem
    from .space import Space

#: Axes that do not shape the pipeline or the process groups; the fast lane keeps
#: them as a grid beside the skeletons.
INNER = ("recompute", "sharding")
#: Inner axes that a space may list besides, and that bytes depend on.
MASKS = (
    *INNER,
    "instances",
    "offload",
    "precision",
    "cross_entropy",
    "dispatcher",
    "cp_style",
)


class NothingDividesError(InputError):
    """No ``mbs * dp`` of a space divides the global batch."""


@dataclass(frozen=True, kw_only=True)
class Domains:
    """A problem over a space: each axis's values, as numbers and as expressions.

    Attributes
    ----------
    problem, space
        What was asked.
    values
        For each decided and derived axis its codes, ascending.
    dims
        The same axes as expressions.
    rules
        The rules in force and their bodies, folded for this problem.
    """

    problem: Problem
    space: Space
    values: Mapping[str, tuple[int, ...]]
    dims: Dims
    rules: tuple[tuple[Rule, Expr], ...]

    @property
    def masks(self) -> tuple[str, ...]:
        """Inner axes that bytes depend on."""
        return tuple(n for n in MASKS if n in INNER or self._given(n))

    @property
    def flags(self) -> tuple[str, ...]:
        """Inner axes that no byte depends on."""
        return tuple(n for n in OVERLAPS if self._given(n))

    @property
    def inner(self) -> tuple[str, ...]:
        """Inner axes, masks before flags."""
        return (*self.masks, *self.flags)

    @property
    def skeleton(self) -> tuple[str, ...]:
        """Axes of a skeleton, in the order that sorts a set."""
        plain = tuple(n for n in (*DECIDED, *DERIVED) if n not in INNER)
        return (*plain, "gbs") if len(self.values["gbs"]) > 1 else plain

    @property
    def names(self) -> tuple[str, ...]:
        """Every axis that is not the same plain default everywhere."""
        return (*(n for n in (*DECIDED, *DERIVED)), *self._more)

    @property
    def _more(self) -> tuple[str, ...]:
        listed = set(self.inner) | set(self.skeleton)
        return tuple(n for n in OPTIONAL if n in listed)

    def _given(self, name: str) -> bool:
        return self.values[name] != (OPTIONAL[name],)


def bind(problem: Problem, space: Space) -> Domains:
    """Fix a space for a problem.

    Raises
    ------
    InputError
        If a pin lies outside its axis, or no ``mbs * dp`` divides the global batch.
    """
    values = {name: space.values(name, problem) for name in AXES}
    world, batches = problem.cluster.world_size, values["gbs"]
    dense = _quotients(world, values["tp"], values["pp"], values["cp"])
    expert = _quotients(world, values["etp"], values["ep"], values["pp"])
    found = (_quotients(b, values["mbs"], dense) for b in batches)
    micro = tuple(sorted({m for some in found for m in some}))
    if dense and not micro:
        smallest = min(dense) * min(values["mbs"])
        batch = problem.training.global_batch
        raise NothingDividesError(
            f"the global batch must be a multiple of mbs * dp, got {batch:,}, which "
            f"no mbs in {_short(values['mbs'])} and dp in {_short(dense)} divides; "
            f"{_nearest(batch, smallest)} would do"
        )
    values |= {"dp": dense or (1,), "edp": expert or (1,), "m": micro or (1,)}
    dims = Dims.of(values)
    _check_advice(space)
    facts = Facts(
        problem=problem,
        dims=dims,
        options=axis_options(dims, moe=problem.architecture.moe is not None),
        structures=Structures(planned=True),
    )
    in_force = tuple(
        (rule, rule.body(facts))
        for rule in rules(problem.dialect)
        if rule.kind == "hard" or rule.id in space.advice
    )
    return Domains(
        problem=problem, space=space, values=values, dims=dims, rules=in_force
    )


def _check_advice(space: Space) -> None:
    """Refuse advice that no rule gives: a typing error would silently drop it."""
    known = {rule.id for rule in ALL_RULES if rule.kind != "hard"}
    for name in space.advice:
        if name not in known:
            raise unknown_name(f"advice rule of space {space.name}", name, known)


def _quotients(number: int, *factors: Iterable[int]) -> tuple[int, ...]:
    """Return number / (a * b * ...) wherever it is whole, ascending."""
    products = {1}
    for values in factors:
        products = {p * v for p in products for v in values if p * v <= number}
    return tuple(sorted({number // p for p in products if number % p == 0}))


def _short(values: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, values[:8]))
    return f"{{{shown}{', ...' if len(values) > 8 else ''}}}"


def _nearest(batch: int, unit: int) -> str:
    below = batch // unit * unit
    return f"{below:,} or {below + unit:,}" if below else f"{unit:,}"
