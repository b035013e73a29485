"""Walks over expressions: the axes used, substitution, the int64 proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import logic, node
from .node import Axis, Expr, Op

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping


def nodes(
    roots: Iterable[Expr], known: Container[Expr] = frozenset()
) -> Iterator[Expr]:
    """Yield every node below the roots once, arguments before their users.

    Nodes that are known, and what is below them alone, are left out.
    """
    seen: set[Expr] = set()
    stack = [(root, False) for root in roots]
    while stack:
        current, expanded = stack.pop()
        if expanded:
            yield current
        elif current not in seen and current not in known:
            seen.add(current)
            stack.append((current, True))
            stack.extend((arg, False) for arg in current.args if arg not in seen)


def axes(*roots: Expr) -> tuple[Axis, ...]:
    """Return the axes that the expressions depend on, in the order of their names."""
    found = {n.data for n in nodes(roots) if n.op is Op.AXIS}
    domains = [a for a in found if isinstance(a, Axis)]
    return tuple(sorted(domains, key=lambda a: a.name))


def fits_int64(*roots: Expr) -> bool:
    """Whether no intermediate value can leave the signed 64-bit range."""
    return all(root.safe for root in roots)


def substitute(
    roots: Iterable[Expr], values: Mapping[str, int | Expr]
) -> tuple[Expr, ...]:
    """Replace axes by values or expressions, and fold what becomes constant."""
    order = list(roots)
    done: dict[Expr, Expr] = {}
    for n in nodes(order):
        done[n] = _rebuild(n, tuple(done[a] for a in n.args), values)
    return tuple(done[r] for r in order)


def _rebuild(n: Expr, args: tuple[Expr, ...], values: Mapping[str, int | Expr]) -> Expr:
    if n.op is Op.AXIS:
        assert isinstance(n.data, Axis)
        return node.as_expr(values.get(n.data.name, n))
    if args == n.args:
        return n
    match n.op:
        case Op.SUM:
            constant, weights = node.sum_data(n)
            scaled = (node.product((a, w)) for a, w in zip(args, weights, strict=True))
            return node.total((constant, *scaled))
        case Op.PRODUCT:
            return node.product(args)
        case Op.DIV:
            return node._divide(args[0], args[1], str(n.data))
        case Op.MOD:
            return node.modulo(*args)
        case Op.MAX:
            return logic.maximum(*args)
        case Op.MIN:
            return logic.minimum(*args)
        case Op.WHERE:
            return logic.where(*args)
        case Op.TABLE:
            assert isinstance(n.data, tuple)
            return logic.table(args[0], n.data)
        case Op.LE:
            return logic.at_most(*args)
        case Op.EQ:
            return logic.equals(*args)
        case Op.AND:
            return logic.both(*args)
        case Op.OR:
            return logic.either(*args)
        case Op.NOT:
            return logic.negate(args[0])
        case _:
            raise AssertionError(f"no rule to rebuild {n.op}")
