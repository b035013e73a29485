"""The third interpreter of expressions: CP-SAT variables and constraints.

Every auxiliary is a function of the axes (full equivalences, equalities), so that
enumeration meets each configuration exactly once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ortools.sat.python import cp_model

from ...models.expr import Axis, Expr, Op, fits_int64, linear_form, nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Domains of variables must stay inside these bounds, ends included.
_LIMIT = 2**62 - 1


class Encoder:
    """Translates expressions into one CP-SAT model.

    Attributes
    ----------
    model
        The model under construction.
    axes
        The variable of every axis met or declared so far, by name.
    """

    def __init__(self) -> None:
        """Start an empty model."""
        self.model = cp_model.CpModel()
        self.axes: dict[str, cp_model.IntVar] = {}
        self._done: dict[Expr, Any] = {}

    def declare(self, axis: Axis) -> cp_model.IntVar:
        """Return the variable of an axis, its domain the axis's values."""
        if axis.name not in self.axes:
            domain = cp_model.Domain.from_values(list(axis.values))
            self.axes[axis.name] = self.model.new_int_var_from_domain(domain, axis.name)
        return self.axes[axis.name]

    def term(self, root: Expr) -> Any:
        """Return a whole-number expression as a linear expression or constant.

        Raises
        ------
        OverflowError
            If the bounds do not prove that 62 bits are enough.
        """
        if not fits_int64(root) or max(abs(root.lo), abs(root.hi)) > _LIMIT:
            raise OverflowError(f"CP-SAT cannot hold {root!r}")
        for node in nodes((root,), self._done):
            self._done[node] = self._encode(node)
        return self._done[root]

    def require(self, conditions: Iterable[Expr]) -> None:
        """Add conditions that every solution meets."""
        for condition in conditions:
            self._require(condition)

    def _require(self, c: Expr) -> None:
        if c.constant is not None:
            if not c.constant:
                self.model.add_bool_or([])
            return
        match c.op:
            case Op.AND:
                self.require(c.args)
            case Op.OR:
                self.model.add_bool_or([self.term(a) for a in c.args])
            case Op.LE:
                self.model.add(self.term(c.args[0]) <= self.term(c.args[1]))
            case Op.EQ:
                self.model.add(self.term(c.args[0]) == self.term(c.args[1]))
            case _:
                self.model.add(self.term(c) == 1)

    def _encode(self, n: Expr) -> Any:
        if n.constant is not None:
            return n.constant
        if n.op is Op.AXIS:
            assert isinstance(n.data, Axis)
            return self.declare(n.data)
        if n.op is Op.SUM:
            constant, terms = linear_form(n)
            weights = [w for _, w in terms]
            parts = [self._done[t] for t, _ in terms]
            return cp_model.LinearExpr.weighted_sum(parts, weights) + constant
        a = [self._done[x] for x in n.args]
        if n.op in (Op.LE, Op.EQ, Op.AND, Op.OR, Op.NOT):
            return self._literal(n, a)
        return self._variable(n, a)

    def _variable(self, n: Expr, a: list[Any]) -> cp_model.IntVar:
        model, data = self.model, n.data
        result = model.new_int_var(n.lo, n.hi, "")
        match n.op:
            case Op.PRODUCT:
                model.add_multiplication_equality(result, a)
            case Op.DIV:
                model.add_division_equality(result, a[0], a[1])
            case Op.MOD:
                model.add_modulo_equality(result, a[0], a[1])
            case Op.MAX:
                model.add_max_equality(result, a)
            case Op.MIN:
                model.add_min_equality(result, a)
            case Op.WHERE:
                model.add(result == a[1]).only_enforce_if(a[0])
                model.add(result == a[2]).only_enforce_if(~a[0])
            case Op.TABLE:
                assert isinstance(data, tuple)
                model.add_element(a[0], list(data), result)
            case _:
                raise AssertionError(f"no encoding of {n.op}")
        return result

    def _literal(self, n: Expr, a: list[Any]) -> cp_model.IntVar:
        model, truth = self.model, self.model.new_bool_var("")
        match n.op:
            case Op.LE:
                model.add(a[0] <= a[1]).only_enforce_if(truth)
                model.add(a[0] >= a[1] + 1).only_enforce_if(~truth)
            case Op.EQ:
                model.add(a[0] == a[1]).only_enforce_if(truth)
                model.add(a[0] != a[1]).only_enforce_if(~truth)
            case Op.AND:
                model.add_bool_and(a).only_enforce_if(truth)
                model.add_bool_or([~x for x in a]).only_enforce_if(~truth)
            case Op.OR:
                model.add_bool_or(a).only_enforce_if(truth)
                model.add_bool_and([~x for x in a]).only_enforce_if(~truth)
            case _:
                model.add(a[0] + truth == 1)
        return truth
