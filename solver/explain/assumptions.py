"""Conflicts and corrections by CP-SAT: constraints behind assumptions.

For requests whose points cannot be listed. Every constraint is enforced by a literal
of its own; which sets of them are feasible is asked of the solver, and the minimal
conflicts and corrections follow from the answers by the duality of hitting sets.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from ortools.sat.python import cp_model

from ...models.expr import at_most, axes, both, equals, implies, maximum, one_of
from ..cpsat.encode import Encoder
from ..cpsat.enumerate import SHAPE, IncompleteError
from ..masks import hitting_sets
from ..peaks import Peaks
from ..vector import derived_equalities
from .search import MEMORY, mask_of, varying

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...models.expr import Expr
    from .limits import Request

Sets = tuple[frozenset[str], ...]


class Guarded:
    """A CP-SAT model each of whose named constraints can be left out.

    Attributes
    ----------
    names
        The constraints, in the order in which they were added.
    calls
        How often the solver was asked.
    """

    def __init__(self, encoder: Encoder) -> None:
        """Take a model; what it requires already cannot be left out."""
        self._encoder = encoder
        self._guards: dict[str, cp_model.IntVar] = {}
        self.calls = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The constraints, in the order in which they were added."""
        return tuple(self._guards)

    def add(self, name: str, condition: Expr) -> None:
        """Add a constraint that can be left out."""
        model = self._encoder.model
        guard = self._guards[name] = model.new_bool_var(name)
        model.add(self._encoder.term(condition) == 1).only_enforce_if(guard)

    def core(self, kept: Iterable[str]) -> frozenset[str] | None:
        """Return constraints among those kept that exclude everything, or None.

        They are enough, not always the fewest.

        Raises
        ------
        IncompleteError
            If CP-SAT could not decide.
        """
        model, wanted = self._encoder.model, frozenset(kept)
        model.clear_assumptions()
        model.add_assumptions([self._guards[name] for name in wanted])
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.catch_sigint_signal = False
        status = solver.solve(model)
        self.calls += 1
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        if status != cp_model.INFEASIBLE:
            raise IncompleteError(f"CP-SAT ended with {solver.status_name(status)}")
        index = {guard.index: name for name, guard in self._guards.items()}
        found = solver.sufficient_assumptions_for_infeasibility()
        # Presolve may name literals that nobody assumed (OR-tools issue 5141).
        return frozenset(index[i] for i in found if i in index) & wanted


def guarded(request: Request) -> Guarded:
    """Put a request's rules, limits and memory behind assumptions.

    Points whose degrees do not multiply to the devices and the batch are left out.
    """
    domains, encoder = request.wide, Encoder()
    for name in domains.values:
        for axis in axes(getattr(domains.dims, name)):
            encoder.declare(axis)
    encoder.require(derived_equalities(domains))
    model = Guarded(encoder)
    for name, body in varying(request):
        model.add(name, body)
    for limit in request.limits:
        model.add(limit.id, one_of(getattr(domains.dims, limit.axis), limit.allowed))
    model.add(MEMORY, _fits(request))
    return model


def _fits(request: Request) -> Expr:
    """Whether the worst rank of whatever pipeline is chosen fits on the device."""
    domains, memory = request.wide, Peaks(request.wide)
    conditions = []
    for codes in product(*(domains.values[name] for name in SHAPE)):
        shape = dict(zip(SHAPE, codes, strict=True))
        chosen = both(*(equals(getattr(domains.dims, n), c) for n, c in shape.items()))
        peak = maximum(*memory.worst(memory.key(shape)))
        conditions.append(implies(chosen, at_most(peak, memory.limit)))
    return both(*conditions)


def conflicts_and_corrections(
    names: Sequence[str], core: Callable[[Iterable[str]], frozenset[str] | None]
) -> tuple[Sets, Sets]:
    """Return every minimal conflict and every minimal correction.

    A smallest set that meets all corrections known so far is a conflict if it
    excludes everything; otherwise, grown as far as it stays feasible, what it leaves
    out is a correction that was not known.

    Parameters
    ----------
    names
        The constraints.
    core
        For a set of them, some that exclude everything, or None if it is feasible.
    """
    known: list[int] = []
    every = list(names)
    while True:
        candidates = [_named(mask, every) for mask in hitting_sets(known)]
        open_set = next((c for c in candidates if core(c) is None), None)
        if open_set is None:
            conflicts = tuple(c for c in candidates if c)
            return conflicts, tuple(_named(mask, every) for mask in known)
        grown = set(open_set)
        for name in every:
            if name not in grown and core({*grown, name}) is None:
                grown.add(name)
        left = tuple(name for name in every if name not in grown)
        if not left:
            return (), (frozenset(),)
        known.append(mask_of(left, every))


def _named(mask: int, names: Sequence[str]) -> frozenset[str]:
    return frozenset(name for i, name in enumerate(names) if mask >> i & 1)
