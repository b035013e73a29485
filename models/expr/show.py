"""Expressions as text, for messages and for looking at a definition."""

from __future__ import annotations

from .node import Axis, Expr, Op, sum_data

_INFIX = {
    Op.PRODUCT: "*",
    Op.MOD: "%",
    Op.LE: "<=",
    Op.EQ: "==",
    Op.AND: "and",
    Op.OR: "or",
}


def show(n: Expr) -> str:
    """Write an expression in infix form."""
    if n.op is Op.AXIS:
        assert isinstance(n.data, Axis)
        return n.data.name
    args = [show(a) for a in n.args]
    if n.op is Op.SUM:
        constant, weights = sum_data(n)
        terms = [
            a if w == 1 else f"{w}*{a}" for a, w in zip(args, weights, strict=True)
        ]
        if constant or not terms:
            terms.append(str(constant))
        return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"
    if n.op is Op.DIV:
        sign = "/" if n.data == "exact" else "//"
        return f"({args[0]} {sign} {args[1]})"
    if n.op in _INFIX:
        return f"({f' {_INFIX[n.op]} '.join(args)})"
    if n.op is Op.TABLE:
        return f"table{n.data}[{args[0]}]"
    return f"{n.op.value}({', '.join(args)})"
