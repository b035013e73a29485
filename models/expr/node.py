"""Hash-consed integer expressions with interval bounds.

An ``Expr`` is an immutable node; equal nodes are one object, so that a sub-term
shared by a hundred rules is evaluated once. Sums are kept as a constant and
whole-number coefficients of distinct nodes: building ``2*x + 3 + x`` gives the
node ``3*x + 3``. Every node carries the interval its value lies in, from which
``fits_int64`` follows before anything is evaluated.

Booleans are expressions with bounds 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, ClassVar, cast
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

INT64_MAX = 2**63 - 1


class Op(Enum):
    """What a node does with its arguments."""

    AXIS = "axis"
    SUM = "sum"
    PRODUCT = "product"
    DIV = "div"  # floor of a quotient, divisor at least 1
    MOD = "mod"
    MAX = "max"
    MIN = "min"
    WHERE = "where"
    TABLE = "table"
    LE = "le"
    EQ = "eq"
    AND = "and"
    OR = "or"
    NOT = "not"


@dataclass(frozen=True)
class Axis:
    """A named axis and its values, whole numbers in ascending order.

    ``labels`` names the values of a categorical axis, one for each value.
    """

    name: str
    values: tuple[int, ...]
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the values at birth."""
        if not self.values or list(self.values) != sorted(set(self.values)):
            raise ValueError(
                f"axis {self.name} needs distinct values in ascending order, got "
                f"{self.values}"
            )
        if self.labels and len(self.labels) != len(self.values):
            raise ValueError(f"axis {self.name} needs one label for each value")

    def label(self, value: int) -> str:
        """Write one value as a user does."""
        if self.labels:
            return self.labels[self.values.index(value)]
        return str(value)


class Expr:
    """A node. Build it with the functions of this package and the operators.

    Attributes
    ----------
    op, args
        The operation and the nodes it works on.
    data
        What is not a node: a constant and coefficients, a table, an axis.
    lo, hi
        Bounds of the value, both included.
    safe
        Whether no intermediate value of the node or of one below can leave the signed
        64-bit range, in whatever order a sum is taken.
    serial
        Number of the node in order of birth: a stable order for arguments.
    """

    __slots__ = ("__weakref__", "args", "data", "hi", "lo", "op", "safe", "serial")
    op: Op
    args: tuple[Expr, ...]
    data: object
    lo: int
    hi: int
    safe: bool
    serial: int

    _interned: ClassVar[WeakValueDictionary[object, Expr]] = WeakValueDictionary()
    _births: ClassVar[Iterator[int]] = count()

    @staticmethod
    def make(
        op: Op, args: tuple[Expr, ...], data: object, bounds: Callable[[], Bounds]
    ) -> Expr:
        """Return the one node of this operation, arguments and data."""
        key = (op, args, data)
        found = Expr._interned.get(key)
        if found is None:
            found = object.__new__(Expr)
            found.op, found.args, found.data = op, args, data
            found.lo, found.hi = bounds()
            found.safe = _magnitude(found) <= INT64_MAX and all(a.safe for a in args)
            found.serial = next(Expr._births)
            Expr._interned[key] = found
        return found

    def __add__(self, other: Expr | int) -> Expr:
        """Sum."""
        return total((self, other))

    __radd__ = __add__

    def __sub__(self, other: Expr | int) -> Expr:
        """Difference."""
        return total((self, product((as_expr(other), -1))))

    def __rsub__(self, other: Expr | int) -> Expr:
        """Difference."""
        return total((other, product((self, -1))))

    def __mul__(self, other: Expr | int) -> Expr:
        """Product."""
        return product((self, other))

    __rmul__ = __mul__

    def __bool__(self) -> bool:
        """Refuse: a Python branch on an axis would hide values from the solver."""
        raise TypeError("an expression has no truth value; use where() or both()")

    def __repr__(self) -> str:
        """Write the expression in infix form."""
        from .show import show

        return show(self)

    @property
    def constant(self) -> int | None:
        """The value if it is fixed, else None."""
        return self.lo if self.lo == self.hi else None


Bounds = tuple[int, int]


def _magnitude(n: Expr) -> int:
    """Bound what any partial sum or product of a node can reach."""
    if n.op is Op.SUM:
        constant, weights = sum_data(n)
        parts = zip(n.args, weights, strict=True)
        return abs(constant) + sum(abs(w) * max(abs(a.lo), abs(a.hi)) for a, w in parts)
    if n.op is Op.PRODUCT:
        largest = 1
        for factor in n.args:
            largest *= max(abs(factor.lo), abs(factor.hi), 1)
        return largest
    return max(abs(n.lo), abs(n.hi))


def as_expr(value: Expr | int) -> Expr:
    """Wrap a whole number."""
    if isinstance(value, Expr):
        return value
    number = int(value)
    if -1 <= number <= _SMALL:
        return _small(number)
    return _constant(number)


#: Whole numbers up to this are built once and kept.
_SMALL = 64


def _constant(number: int) -> Expr:
    return Expr.make(Op.SUM, (), (number, ()), lambda: (number, number))


_small = cache(_constant)


def axis(domain: Axis) -> Expr:
    """Return the node of an axis."""
    if len(domain.values) == 1:
        return as_expr(domain.values[0])
    return Expr.make(Op.AXIS, (), domain, lambda: (domain.values[0], domain.values[-1]))


def _serial(node: Expr) -> int:
    return node.serial


def _terms(node: Expr) -> tuple[int, Iterable[tuple[Expr, int]]]:
    """Split a node into a constant and coefficients of other nodes."""
    if node.op is Op.SUM:
        constant, weights = sum_data(node)
        return constant, zip(node.args, weights, strict=True)
    return 0, ((node, 1),)


def sum_data(node: Expr) -> tuple[int, tuple[int, ...]]:
    """Return a sum's constant and the coefficients of its arguments."""
    assert node.op is Op.SUM
    return cast(tuple[int, tuple[int, ...]], node.data)


def linear_form(node: Expr) -> tuple[int, tuple[tuple[Expr, int], ...]]:
    """Split into a constant and (node, coefficient) pairs, none of them a sum."""
    constant, terms = _terms(node)
    return constant, tuple(terms)


def total(parts: Iterable[Expr | int]) -> Expr:
    """Sum of many terms, equal terms collected.

    Quotients with one divisor are gathered into one quotient; this keeps the value
    only if each was exact, so ``exact_div`` marks them and ``floor_div`` does not.
    """
    constant = 0
    weights: dict[Expr, int] = {}
    for part in parts:
        offset, terms = _terms(as_expr(part))
        constant += offset
        for node, weight in terms:
            weights[node] = weights.get(node, 0) + weight
    return _sum(constant, _gather_quotients(weights))


def _gather_quotients(weights: dict[Expr, int]) -> dict[Expr, int]:
    by_divisor: dict[Expr, list[Expr]] = {}
    for node in weights:
        if node.op is Op.DIV and node.data == "exact":
            by_divisor.setdefault(node.args[1], []).append(node)
    for divisor, nodes in by_divisor.items():
        if len(nodes) > 1:
            top = total(product((n.args[0], weights.pop(n))) for n in nodes)
            merged = exact_div(top, divisor)
            offset, terms = _terms(merged)
            assert offset == 0 or merged.constant is not None
            for node, weight in terms:
                weights[node] = weights.get(node, 0) + weight
    return weights


def _sum(constant: int, weights: dict[Expr, int]) -> Expr:
    kept = sorted(
        ((n, w) for n, w in weights.items() if w), key=lambda pair: pair[0].serial
    )
    if len(kept) == 1 and constant == 0 and kept[0][1] == 1:
        return kept[0][0]
    nodes = tuple(n for n, _ in kept)
    factors = tuple(w for _, w in kept)

    def bounds() -> Bounds:
        ends = [sorted((n.lo * w, n.hi * w)) for n, w in kept]
        return constant + sum(e[0] for e in ends), constant + sum(e[1] for e in ends)

    return Expr.make(Op.SUM, nodes, (constant, factors), bounds)


def product(parts: Iterable[Expr | int]) -> Expr:
    """Product of factors, distributed over sums so that monomials can be shared."""
    result = as_expr(1)
    for part in parts:
        result = _times(result, as_expr(part))
    return result


def _times(left: Expr, right: Expr) -> Expr:
    if left.constant is not None:
        left, right = right, left
    if right.constant is not None:
        offset, terms = _terms(left)
        factor = right.constant
        return _sum(offset * factor, {n: w * factor for n, w in terms})
    if left.op is not Op.SUM and right.op is not Op.SUM:
        return _monomial(left, right)
    (c1, t1), (c2, t2) = linear_form(left), linear_form(right)
    crossed = [product((_monomial(a, b), wa * wb)) for a, wa in t1 for b, wb in t2]
    singles = [product((a, wa * c2)) for a, wa in t1]
    singles += [product((b, wb * c1)) for b, wb in t2]
    return total([c1 * c2, *crossed, *singles])


def _monomial(left: Expr, right: Expr) -> Expr:
    factors = [
        f for n in (left, right) for f in (n.args if n.op is Op.PRODUCT else (n,))
    ]
    args = tuple(sorted(factors, key=_serial))

    def bounds() -> Bounds:
        lo, hi = 1, 1
        for node in args:
            ends = (lo * node.lo, lo * node.hi, hi * node.lo, hi * node.hi)
            lo, hi = min(ends), max(ends)
        return lo, hi

    return Expr.make(Op.PRODUCT, args, None, bounds)


def _divide(top: Expr | int, bottom: Expr | int, kind: str) -> Expr:
    top, bottom = as_expr(top), as_expr(bottom)
    if bottom.lo < 1:
        raise ValueError(f"a divisor must be at least 1, got {bottom!r}")
    if bottom.constant == 1:
        return top
    if top.constant is not None and bottom.constant is not None:
        return as_expr(top.constant // bottom.constant)
    ends = (top.lo // bottom.lo, top.lo // bottom.hi)
    tops = (top.hi // bottom.lo, top.hi // bottom.hi)
    return Expr.make(Op.DIV, (top, bottom), kind, lambda: (min(ends), max(tops)))


def exact_div(top: Expr | int, bottom: Expr | int) -> Expr:
    """Quotient that is whole wherever the rules hold; floored elsewhere."""
    return _divide(top, bottom, "exact")


def floor_div(top: Expr | int, bottom: Expr | int) -> Expr:
    """Quotient rounded down."""
    return _divide(top, bottom, "floor")


def ceil_div(top: Expr | int, bottom: Expr | int) -> Expr:
    """Quotient of whole numbers rounded up."""
    return floor_div(total((top, bottom, -1)), bottom)


def modulo(top: Expr | int, bottom: Expr | int) -> Expr:
    """Remainder of a division of whole numbers by one of at least 1."""
    top, bottom = as_expr(top), as_expr(bottom)
    if bottom.lo < 1 or top.lo < 0:
        raise ValueError("a remainder needs a dividend >= 0 and a divisor >= 1")
    if bottom.constant == 1:
        return as_expr(0)
    if top.constant is not None and bottom.constant is not None:
        return as_expr(top.constant % bottom.constant)
    return Expr.make(
        Op.MOD, (top, bottom), None, lambda: (0, min(top.hi, bottom.hi - 1))
    )
