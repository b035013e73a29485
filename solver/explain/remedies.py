"""Exact amounts: the least change of one thing that makes a request feasible."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from ...models.layout import SPLITS, axis_label
from ...models.units import Bytes, gib
from .resolve import feasible
from .search import MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ...models.layout import Layout
    from ...models.problem import Problem
    from ..answer import Infeasible
    from ..space import Space
    from .limits import Request

    Progress = Callable[[str, int, int], None]

Kind = Literal["hbm", "nodes", "sequence", "batch", "values", "stages"]
#: Sequence lengths that are offered are multiples of this, or of one token if the
#: sequence is shorter.
GRANULE = 1024
#: Larger clusters than this are not tried, in devices; nodes are tried one by one as
#: far as this, and by doubling beyond.
MOST_DEVICES = 4096
EACH_NODE = 24
_EACH = 12
#: Rules on the length of a sequence alone.
_LENGTH = frozenset({"seq-cp", "seq-sp"})


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """One change that makes a request feasible.

    Attributes
    ----------
    kind
        What is changed.
    amount
        Bytes that each device lacks, nodes, tokens of a sequence, or sequences of
        the global batch; the number of axes for ``values`` and ``stages``.
    sentence
        The change in words.
    least
        Whether every smaller change of this kind is known not to be enough.
    witness
        A configuration that becomes feasible.
    values
        For ``values`` and ``stages``: the codes of each axis, any of which will do.
    """

    kind: Kind
    amount: int
    sentence: str
    least: bool
    witness: Layout
    values: tuple[tuple[str, tuple[int, ...]], ...] = ()


def remedies(
    request: Request, value: Infeasible, progress: Progress | None = None
) -> tuple[Remedy, ...]:
    """Return what would make a request feasible, each by re-solving it.

    Parameters
    ----------
    request, value
        The request and its explanation.
    progress
        Called with a text, what is done, and how much there is.
    """
    sources = (_hbm, _values, _stages, _nodes, _sequences, _batches)
    found: list[Remedy] = []
    for done, source in enumerate(sources):
        if progress:
            progress("ways out", done, len(sources))
        found.extend(source(request, value))
    return tuple(found)


def applied(
    remedy: Remedy, problem: Problem, space: Space, amount: int | None = None
) -> tuple[Problem, Space]:
    """Return the request that a remedy makes, or one with another amount."""
    size = remedy.amount if amount is None else amount
    match remedy.kind:
        case "hbm":
            return _with_bytes(problem, size), space
        case "nodes":
            return _with_nodes(problem, size), space
        case "sequence":
            training = replace(problem.training, seq_len=size)
        case "batch":
            training = replace(problem.training, global_batch=size)
        case _:
            freed = dict(remedy.values)
            pins = {n: c for n, c in problem.pins.items() if n not in freed}
            for name, codes in remedy.values:
                space = space.restrict(name, codes)
            return replace(problem, pins=pins), space
    return replace(problem, training=training), space


def _with_bytes(problem: Problem, more: int) -> Problem:
    device = problem.cluster.device
    device = replace(device, hbm_bytes=Bytes(device.hbm_bytes + more))
    return replace(problem, cluster=replace(problem.cluster, device=device))


def _with_nodes(problem: Problem, nodes: int) -> Problem:
    return replace(problem, cluster=replace(problem.cluster, nodes=nodes))


def _hbm(request: Request, value: Infeasible) -> Iterator[Remedy]:
    for correction in value.corrections:
        if correction.rules == (MEMORY,):
            more = correction.missing_bytes
            yield Remedy(
                kind="hbm",
                amount=more,
                sentence=f"+{more:,} bytes of HBM on every device ({gib(more)})",
                least=True,
                witness=correction.witness,
            )


def _values(request: Request, value: Infeasible) -> Iterator[Remedy]:
    """Give up pins and axes; for one axis every value that will do is listed."""
    limits = {limit.id: limit for limit in request.limits}
    for correction in value.corrections:
        if not correction.rules or not set(correction.rules) <= set(limits):
            continue
        given_up, at = [limits[n] for n in correction.rules], correction.witness.point()
        listed: list[tuple[str, tuple[int, ...]]]
        listed = [(limit.axis, (at[limit.axis],)) for limit in given_up]
        if len(given_up) == 1:
            listed = [(given_up[0].axis, _all_that_do(request, given_up[0].axis))]
        yield Remedy(
            kind="values",
            amount=len(listed),
            sentence=" and ".join(
                f"{name}={' or '.join(axis_label(name, c) for c in codes)}"
                f" instead of {_asked(request, name)}"
                for name, codes in listed
            ),
            least=True,
            witness=correction.witness,
            values=tuple(listed),
        )


def _all_that_do(request: Request, name: str) -> tuple[int, ...]:
    problem, space = request.asked.problem, request.asked.space
    others = next(limit.others for limit in request.limits if limit.axis == name)
    pins = {n: c for n, c in problem.pins.items() if n != name}
    free = replace(problem, pins=pins)
    return tuple(c for c in others if feasible(free, space.restrict(name, (c,))))


def _asked(request: Request, name: str) -> str:
    codes = request.asked.values[name]
    return "/".join(axis_label(name, c) for c in codes)


def _stages(request: Request, value: Infeasible) -> Iterator[Remedy]:
    """Allow the split families that the space does not list."""
    wide = request.wide
    missing = set(range(len(SPLITS))) - set(wide.values["split"])
    if not missing or "split" in request.asked.problem.pins:
        return
    space = request.asked.space.restrict("split", tuple(sorted(missing)))
    witness = feasible(request.asked.problem, space)
    if witness is not None:
        code = witness.split
        yield Remedy(
            kind="stages",
            amount=1,
            sentence=f"allow uneven stages: split={axis_label('split', code)}",
            least=True,
            witness=witness,
            values=(("split", (code,)),),
        )


def _nodes(request: Request, value: Infeasible) -> Iterator[Remedy]:
    """More nodes, or, where memory is not what is missing, fewer."""
    problem, space = request.asked.problem, request.asked.space
    now, each = problem.cluster.nodes, problem.cluster.gpus_per_node
    most = max(MOST_DEVICES // each, now)
    near = range(now + 1, min(now + EACH_NODE, most) + 1)
    far = [now << k for k in range(1, 14) if near.stop <= now << k <= most]
    found = _first(lambda n: feasible(_with_nodes(problem, n), space), (*near, *far))
    if found:
        yield _of_nodes(problem, found, least=found[0] < near.stop)
    if not _by_memory(value):
        fewer = range(now - 1, max(now - EACH_NODE, 1) - 1, -1)
        found = _first(lambda n: feasible(_with_nodes(problem, n), space), fewer)
        if found:
            yield _of_nodes(problem, found, least=True)


def _of_nodes(problem: Problem, found: tuple[int, Layout], *, least: bool) -> Remedy:
    nodes, witness = found
    by = nodes - problem.cluster.nodes
    devices = nodes * problem.cluster.gpus_per_node
    what = "more" if by > 0 else "fewer"
    number = "node" if abs(by) == 1 else "nodes"
    return Remedy(
        kind="nodes",
        amount=nodes,
        sentence=f"{abs(by):,} {what} {number}: {nodes:,} nodes, {devices:,} devices",
        least=least,
        witness=witness,
    )


def _first(
    solve: Callable[[int], Layout | None], amounts: Iterable[int]
) -> tuple[int, Layout] | None:
    for amount in amounts:
        witness = solve(amount)
        if witness is not None:
            return amount, witness
    return None


def _sequences(request: Request, value: Infeasible) -> Iterator[Remedy]:
    """The longest shorter sequence, and the next longer one if it is a rule's fault.

    Without the rules on its length alone, a sequence that fits still fits when it
    gets shorter: bisection finds the longest, and the rules may shorten it further.
    """
    length = request.asked.problem.training.seq_len
    step = GRANULE if length > GRANULE else 1
    solve, below = partial(_at_length, request), (length - 1) // step
    if below and solve(step, _LENGTH):
        good, bad = 1, below + 1
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (
                (middle, bad) if solve(middle * step, _LENGTH) else (good, middle)
            )
        shorter = range(good, max(good - _EACH, 0), -1)
        found = _first(solve, (n * step for n in shorter))
        if found:
            yield _of_sequence(length, found)
    if not _by_memory(value):
        above = range(length // step + 1, length // step + _EACH + 1)
        found = _first(solve, (n * step for n in above))
        if found:
            yield _of_sequence(length, found)


def _at_length(
    request: Request, tokens: int, skip: frozenset[str] = frozenset()
) -> Layout | None:
    problem = request.asked.problem
    training = replace(problem.training, seq_len=tokens)
    return feasible(replace(problem, training=training), request.asked.space, skip)


def _by_memory(value: Infeasible) -> bool:
    """Whether memory is all that is missing."""
    return any(c.rules == (MEMORY,) for c in value.corrections)


def _of_sequence(length: int, found: tuple[int, Layout]) -> Remedy:
    return Remedy(
        kind="sequence",
        amount=found[0],
        sentence=f"sequence {found[0]:,} instead of {length:,}",
        least=True,
        witness=found[1],
    )


def _batches(request: Request, value: Infeasible) -> Iterator[Remedy]:
    """The nearest smaller and larger global batch, if memory is not the reason."""
    if _by_memory(value):
        return
    problem, space = request.asked.problem, request.asked.space
    batch = problem.training.global_batch

    def solve(sequences: int) -> Layout | None:
        training = replace(problem.training, global_batch=sequences)
        return feasible(replace(problem, training=training), space)

    values = request.asked.values
    units = sorted({b * d for b in values["mbs"] for d in values["dp"]})
    for near in (_multiples(batch, units, -1), _multiples(batch, units, 1)):
        found = _first(solve, near)
        if found:
            yield Remedy(
                kind="batch",
                amount=found[0],
                sentence=f"global batch {found[0]:,} instead of {batch:,}",
                least=True,
                witness=found[1],
            )


def _multiples(batch: int, units: list[int], sign: int) -> list[int]:
    """Return the nearest batches on one side that some mbs * dp divides."""
    near = set()
    for unit in units:
        start = batch // unit if sign < 0 or batch % unit == 0 else -(-batch // unit)
        near |= {unit * (start + sign * k) for k in range(_EACH + 1)}
    near = {b for b in near if b > 0 and (b - batch) * sign > 0}
    return sorted(near, key=lambda b: abs(b - batch))[:_EACH]
