"""Two interpreters of expressions: Python ints and int64 arrays.

The third, CP-SAT, is in the solver. All three give the same value at every point
of the axes' domains; the tests hold them to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .node import Axis, Expr, Op
from .visit import fits_int64, nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Array = npt.NDArray[np.int64]


def value(root: Expr, point: Mapping[str, int]) -> int:
    """Return the value at one point, in unbounded whole numbers.

    Parameters
    ----------
    root
        The expression.
    point
        A value for every axis it depends on.
    """
    return values((root,), point)[0]


def values(roots: Iterable[Expr], point: Mapping[str, int]) -> tuple[int, ...]:
    """Return the values of many expressions at one point, shared nodes once."""
    order = list(roots)
    done: dict[Expr, int] = {}
    for n in nodes(order):
        if n.op is Op.AXIS:
            assert isinstance(n.data, Axis)
            done[n] = int(point[n.data.name])
        else:
            done[n] = _int(n, [done[a] for a in n.args])
    return tuple(done[r] for r in order)


def _int(n: Expr, a: list[int]) -> int:
    data: Any = n.data
    match n.op:
        case Op.SUM:
            return int(data[0] + sum(x * w for x, w in zip(a, data[1], strict=True)))
        case Op.PRODUCT:
            result = 1
            for factor in a:
                result *= factor
            return result
        case Op.DIV:
            return a[0] // a[1]
        case Op.MOD:
            return a[0] % a[1]
        case Op.MAX:
            return max(a)
        case Op.MIN:
            return min(a)
        case Op.WHERE:
            return a[1] if a[0] else a[2]
        case Op.TABLE:
            return int(data[a[0]])
        case Op.LE:
            return int(a[0] <= a[1])
        case Op.EQ:
            return int(a[0] == a[1])
        case Op.AND:
            return int(all(a))
        case Op.OR:
            return int(any(a))
        case Op.NOT:
            return int(not a[0])
        case _:
            raise AssertionError(f"no interpretation of {n.op}")


class Evaluator:
    """Evaluates expressions on columns of axis values, keeping shared nodes.

    Parameters
    ----------
    columns
        For each axis an int64 array; all shapes broadcast together.

    Notes
    -----
    Results are cached for the life of the evaluator. Values of a node keep the
    broadcast shape of the axes below it, so a term of one axis stays small.
    """

    def __init__(self, columns: Mapping[str, npt.NDArray[np.integer[Any]]]) -> None:
        """Take the columns."""
        self._columns = {k: np.asarray(v, np.int64) for k, v in columns.items()}
        self._done: dict[Expr, Array] = {}

    def __call__(self, root: Expr) -> Array:
        """Return the value of an expression at every point.

        Raises
        ------
        OverflowError
            If the bounds do not prove that 64 bits are enough.
        """
        if root in self._done:
            return self._done[root]
        if not fits_int64(root):
            raise OverflowError(f"64 bits may not hold {root!r}")
        for n in nodes((root,), self._done):
            self._done[n] = self._array(n)
        return self._done[root]

    def _array(self, n: Expr) -> Array:
        data: Any = n.data
        a = [self._done[x] for x in n.args]
        result: npt.NDArray[Any]
        match n.op:
            case Op.AXIS:
                return self._columns[data.name]
            case Op.SUM:
                pairs = zip(a, data[1], strict=True)
                parts = [x if w == 1 else x * np.int64(w) for x, w in pairs]
                result = _folded(np.add, [np.asarray(data[0], np.int64), *parts])
            case Op.PRODUCT:
                result = _folded(np.multiply, a)
            case Op.DIV:
                result = a[0] // a[1]
            case Op.MOD:
                result = a[0] % a[1]
            case Op.MAX | Op.MIN:
                result = _folded(np.maximum if n.op is Op.MAX else np.minimum, a)
            case Op.WHERE:
                result = np.where(a[0] != 0, a[1], a[2])
            case Op.TABLE:
                result = np.asarray(data, np.int64)[a[0]]
            case Op.LE:
                result = a[0] <= a[1]
            case Op.EQ:
                result = a[0] == a[1]
            case Op.AND | Op.OR:
                result = _folded(np.logical_and if n.op is Op.AND else np.logical_or, a)
            case Op.NOT:
                result = a[0] == 0
            case _:
                raise AssertionError(f"no interpretation of {n.op}")
        return np.asarray(result, np.int64)


def _folded(
    join: Callable[[npt.NDArray[Any], npt.NDArray[Any]], npt.NDArray[Any]],
    parts: Sequence[npt.NDArray[Any]],
) -> npt.NDArray[Any]:
    """Join many parts, those of one shape first and small shapes before large.

    The order changes no whole number, and what depends on few axes stays small.
    """
    by_shape: dict[tuple[int, ...], npt.NDArray[Any]] = {}
    for part in parts:
        known = by_shape.get(part.shape)
        by_shape[part.shape] = part if known is None else join(known, part)
    ordered = sorted(by_shape.values(), key=lambda part: part.size)
    result = ordered[0]
    for part in ordered[1:]:
        result = join(result, part)
    return result
