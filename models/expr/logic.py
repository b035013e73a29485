"""Choices, comparisons and logic on expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .node import Axis, Expr, Op, _serial, as_expr, modulo, total

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TRUE = as_expr(1)
FALSE = as_expr(0)


def _extreme(op: Op, parts: Iterable[Expr | int]) -> Expr:
    nodes = list(dict.fromkeys(as_expr(p) for p in parts))
    if op is Op.MAX:
        floor = max(n.lo for n in nodes)
        nodes = [n for n in nodes if n.hi > floor or n.lo == floor]
    else:
        roof = min(n.hi for n in nodes)
        nodes = [n for n in nodes if n.lo < roof or n.hi == roof]
    choose = max if op is Op.MAX else min
    fixed = [n.constant for n in nodes if n.constant is not None]
    rest = [n for n in nodes if n.constant is None]
    if fixed:
        rest.append(as_expr(choose(fixed)))
    if len(rest) == 1:
        return rest[0]
    args = tuple(sorted(rest, key=_serial))
    return Expr.make(
        op,
        args,
        None,
        lambda: (choose(n.lo for n in args), choose(n.hi for n in args)),
    )


def maximum(*parts: Expr | int) -> Expr:
    """Largest of the parts."""
    return _extreme(Op.MAX, parts)


def minimum(*parts: Expr | int) -> Expr:
    """Smallest of the parts."""
    return _extreme(Op.MIN, parts)


def where(condition: Expr, then: Expr | int, other: Expr | int) -> Expr:
    """``then`` where the condition holds, ``other`` elsewhere."""
    then, other = as_expr(then), as_expr(other)
    if condition.constant is not None:
        return then if condition.constant else other
    if then is other:
        return then
    return Expr.make(
        Op.WHERE,
        (condition, then, other),
        None,
        lambda: (min(then.lo, other.lo), max(then.hi, other.hi)),
    )


def table(index: Expr, values: Sequence[int]) -> Expr:
    """Look up ``values[index]``; the index must stay inside the table."""
    if index.lo < 0 or index.hi >= len(values):
        raise ValueError(
            f"a table of {len(values)} entries needs an index in 0..{len(values) - 1}"
            f", got one in {index.lo}..{index.hi}"
        )
    if index.constant is not None:
        return as_expr(values[index.constant])
    entries = tuple(int(v) for v in values)
    if index.op is Op.AXIS:
        domain = index.data
        assert isinstance(domain, Axis)
        used = [entries[v] for v in domain.values]
    else:
        used = list(entries[index.lo : index.hi + 1])
    return Expr.make(Op.TABLE, (index,), entries, lambda: (min(used), max(used)))


def at_most(left: Expr | int, right: Expr | int) -> Expr:
    """``left <= right``."""
    left, right = as_expr(left), as_expr(right)
    if left.hi <= right.lo:
        return TRUE
    if left.lo > right.hi:
        return FALSE
    return Expr.make(Op.LE, (left, right), None, lambda: (0, 1))


def at_least(left: Expr | int, right: Expr | int) -> Expr:
    """``left >= right``."""
    return at_most(right, left)


def less(left: Expr | int, right: Expr | int) -> Expr:
    """``left < right``."""
    return at_most(total((left, 1)), right)


def equals(left: Expr | int, right: Expr | int) -> Expr:
    """``left == right``."""
    left, right = as_expr(left), as_expr(right)
    if left is right:
        return TRUE
    if left.hi < right.lo or right.hi < left.lo:
        return FALSE
    if left.constant is not None and left.constant == right.constant:
        return TRUE
    args = tuple(sorted((left, right), key=_serial))
    return Expr.make(Op.EQ, args, None, lambda: (0, 1))


def divides(divisor: Expr | int, number: Expr | int) -> Expr:
    """``number % divisor == 0``."""
    return equals(modulo(number, divisor), 0)


def negate(condition: Expr) -> Expr:
    """Logical not."""
    if condition.constant is not None:
        return FALSE if condition.constant else TRUE
    if condition.op is Op.NOT:
        return condition.args[0]
    return Expr.make(Op.NOT, (condition,), None, lambda: (0, 1))


def _junction(op: Op, conditions: Iterable[Expr], absorbing: Expr) -> Expr:
    kept: dict[Expr, None] = {}
    for condition in conditions:
        parts = condition.args if condition.op is op else (condition,)
        for part in parts:
            if part is absorbing:
                return absorbing
            if part.constant is None:
                kept[part] = None
    if not kept:
        return negate(absorbing)
    if len(kept) == 1:
        return next(iter(kept))
    args = tuple(sorted(kept, key=_serial))
    return Expr.make(op, args, None, lambda: (0, 1))


def both(*conditions: Expr) -> Expr:
    """Logical and; true of no conditions."""
    return _junction(Op.AND, conditions, FALSE)


def either(*conditions: Expr) -> Expr:
    """Logical or; false of no conditions."""
    return _junction(Op.OR, conditions, TRUE)


def implies(condition: Expr, consequence: Expr) -> Expr:
    """``consequence`` holds wherever ``condition`` does."""
    return either(negate(condition), consequence)


def one_of(node: Expr, values: Iterable[int]) -> Expr:
    """Whether the value is in a small set."""
    return either(*(equals(node, value) for value in values))
