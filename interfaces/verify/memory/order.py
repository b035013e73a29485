"""What a pipeline rank holds, found by walking its real order of operations.

Written from Megatron's description of its two schedules. A rank runs units, each the
forward (F) or the backward (B) of one micro-batch in one of its chunks; a unit's
activations are held from the start of its F to the end of its B.
"""

from functools import cache

Unit = tuple[str, int]


def forward_sequence(pp: int, vpp: int, m: int) -> list[int]:
    """Chunks of the forward units: groups of ``pp`` micro-batches, chunk by chunk."""
    sequence: list[int] = []
    for start in range(0, m, pp):
        group = min(pp, m - start)
        for chunk in range(vpp):
            sequence += [chunk] * group
    return sequence


def warm_up_units(pp: int, vpp: int, rank: int, m: int) -> int:
    """Forward units that a rank runs before its first backward unit's partner."""
    if vpp == 1:
        return min(pp - 1 - rank, m)
    return min(2 * (pp - 1 - rank) + (vpp - 1) * pp, m * vpp)


def order(pp: int, vpp: int, rank: int, m: int) -> list[Unit]:
    """All units of a rank: warm-up, one forward and one backward in turn, the rest."""
    forward = forward_sequence(pp, vpp, m)
    backward = [vpp - 1 - chunk for chunk in forward]
    early = warm_up_units(pp, vpp, rank, m)
    units: list[Unit] = [("F", chunk) for chunk in forward[:early]]
    for step, chunk in enumerate(forward[early:]):
        units += [("F", chunk), ("B", backward[step])]
    units += [("B", chunk) for chunk in backward[len(forward) - early :]]
    return units


@cache
def held(pp: int, vpp: int, rank: int, m: int) -> tuple[tuple[int, ...], ...]:
    """Return micro-batches held in each chunk while a unit runs, the most of them.

    Of the vectors met those are left out that hold no more in any chunk than another
    one. Between warm-up and the end the same vectors return every ``pp`` micro-batches,
    so that a long run is walked shortened by whole groups.
    """
    short = min(m, 4 * pp + m % pp)
    now = [0] * vpp
    seen: dict[tuple[int, ...], None] = {}
    for kind, chunk in order(pp, vpp, rank, short):
        if kind == "F":
            now[chunk] += 1
        seen[tuple(now)] = None
        if kind == "B":
            now[chunk] -= 1
    assert not any(now), "what was held is let go"
    return tuple(v for v in seen if not any(v != w and _within(v, w) for w in seen))


def _within(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    return all(a <= b for a, b in zip(small, large, strict=True))
