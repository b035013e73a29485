"""Which chunk holds how many layers, from the sentences of the split families."""

from __future__ import annotations

from functools import cache

SPLITS = ("even", "balanced", "first-last")


@cache
def sizes(split: str, layers: int, pp: int, vpp: int) -> tuple[int, ...] | None:
    """Return the layers of every chunk along the model; None if there is no member."""
    chunks = pp * vpp
    if split == "even":
        return (layers // chunks,) * chunks if layers % chunks == 0 else None
    if split == "balanced":
        return _balanced(layers, chunks)
    if pp < 3 or layers % vpp:
        return None
    per_depth = layers // vpp
    for middle in range(1, per_depth + 1):
        ends = per_depth - (pp - 2) * middle
        last, first = ends // 2, ends - ends // 2
        if first <= middle and last <= middle:
            row = (first, *((middle,) * (pp - 2)), last)
            return row * vpp if last >= 1 else None
    return None


def _balanced(layers: int, chunks: int) -> tuple[int, ...] | None:
    """Take one layer from the last chunk, the first, the last but one, and so on."""
    if layers < chunks or layers % chunks == 0:
        return None
    result = [layers // chunks + 1] * chunks
    front, back, at_back = 0, chunks - 1, True
    for _ in range(sum(result) - layers):
        if at_back:
            result[back] -= 1
            back -= 1
        else:
            result[front] -= 1
            front += 1
        at_back = not at_back
    return tuple(result)


def is_new(split: str, layers: int, pp: int, vpp: int) -> bool:
    """Whether the family has a member here that no family before it has."""
    mine = sizes(split, layers, pp, vpp)
    earlier = SPLITS[: SPLITS.index(split)]
    return mine is not None and all(
        sizes(name, layers, pp, vpp) != mine for name in earlier
    )
