"""The orders of operations as plain loops, written from their descriptions.

Imports nothing of the product: slow and obvious on purpose.
"""

from collections.abc import Iterator

Op = tuple[str, int, int]  # kind F or B, chunk, micro-batch


def one_f_one_b(p: int, rank: int, m: int) -> list[Op]:
    """p - rank - 1 forwards first, then one forward and one backward in turn."""
    first = min(p - rank - 1, m)
    ops: list[Op] = [("F", 0, k) for k in range(first)]
    for k in range(m - first):
        ops += [("F", 0, first + k), ("B", 0, k)]
    return ops + [("B", 0, k) for k in range(m - first, m)]


def interleaved(p: int, v: int, rank: int, m: int, g: int, extra: int = 0) -> list[Op]:
    """Megatron's interleaved order with micro-batch groups of g."""
    units = [
        (chunk, micro)
        for start in range(0, m, g)
        for chunk in range(v)
        for micro in range(start, min(start + g, m))
    ]
    first = min(2 * (p - rank - 1) + (v - 1) * g + extra, m * v)
    forward = [("F", c, k) for c, k in units]
    backward = [("B", v - 1 - c, k) for c, k in units]
    ops = forward[:first]
    for f, b in zip(forward[first:], backward, strict=False):
        ops += [f, b]
    return ops + backward[m * v - first :]


def held_over_time(ops: list[Op], v: int) -> Iterator[tuple[int, ...]]:
    """Yield what is held of each chunk after every operation's start."""
    held = [0] * v
    for kind, chunk, _ in ops:
        held[chunk] += kind == "F"
        yield tuple(held)
        held[chunk] -= kind == "B"
