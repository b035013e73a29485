"""One configuration: completed, checked against every rule, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..models.errors import InputError
from ..models.expr import value, values
from ..models.layout import DECIDED, OPTIONAL, SCHEDULES, SPLITS, Layout, axis_label
from ..models.stages import split_is_new
from .answer import Choice, Clash, Memory
from .domains import Domains, bind
from .rules import Facts, Rule
from .space import Space, default_code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.memory import Item
    from ..models.problem import Problem
    from .peaks import Peaks

_DEFAULTS = {"tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "mbs": 1}


def complete_layout(problem: Problem, partial: Mapping[str, int]) -> Layout:
    """Fill in what a user left out of a layout.

    tp, pp, vpp, cp, ep and mbs default to 1; etp to 1; sequence parallelism to on
    with tp > 1; the schedule follows vpp; the split is the first family with a
    member of this shape; sharding is zero-1; nothing is recomputed.

    Raises
    ------
    InputError
        If the sizes do not multiply to the cluster or divide the batch.
    """
    point = {**_DEFAULTS, **partial}
    point.setdefault("etp", 1)
    point.setdefault("sp", int(point["tp"] > 1))
    schedule = "interleaved" if point["vpp"] > 1 else "1f1b"
    point.setdefault("schedule", SCHEDULES.index(schedule))
    point.setdefault("split", _first_split(problem, point))
    point.setdefault("recompute", 0)
    point.setdefault("sharding", 1)
    for name in OPTIONAL:
        point.setdefault(name, default_code(name, problem))
    world, batch = problem.cluster.world_size, point["gbs"]
    point["dp"] = _whole(world, point, ("tp", "pp", "cp"), "the number of devices")
    point["edp"] = _whole(world, point, ("etp", "ep", "pp"), "the number of devices")
    point["m"] = _whole(batch, point, ("mbs", "dp"), "the global batch")
    return Layout.from_point(point)


def _first_split(problem: Problem, point: Mapping[str, int]) -> int:
    layers = problem.architecture.num_layers
    for code in range(len(SPLITS)):
        if split_is_new(code, layers, point["pp"], point["vpp"]):
            return code
    return 0


def _whole(
    number: int, point: Mapping[str, int], names: tuple[str, ...], what: str
) -> int:
    divisor = 1
    for name in names:
        divisor *= point[name]
    if number % divisor:
        shown = " * ".join(f"{n}={point[n]}" for n in names)
        raise InputError(
            f"{what} must be a multiple of {' * '.join(names)}, got {number:,} and "
            f"{shown} = {divisor:,}"
        )
    return number // divisor


def space_of(
    layout: Layout, advice: tuple[str, ...] = (), problem: Problem | None = None
) -> Space:
    """Return the space that holds one layout alone.

    Optional axes are listed where they differ from the default, that of the problem
    where it is given.
    """
    point = layout.point()
    axes = {n: (point[n],) for n in DECIDED}
    for name in OPTIONAL:
        if problem is not None:
            default = default_code(name, problem)
        else:
            default = point["gbs"] if name == "gbs" else OPTIONAL[name]
        if point[name] != default:
            axes[name] = (point[name],)
    return Space(name="layout", version=1, axes=axes, advice=advice)


def domains_of(problem: Problem, layout: Layout) -> Domains:
    """Bind a problem to one layout, advice rules included."""
    return bind(problem, space_of(layout, ("tp-node",), problem))


def broken_rules(problem: Problem, layout: Layout) -> tuple[Clash, ...]:
    """Return every rule that a layout breaks, all at once, memory included."""
    domains = domains_of(problem, layout)
    facts = Facts(problem=problem, dims=domains.dims)
    point = layout.point()
    broken = [
        clash(rule, facts, point)
        for rule, body in domains.rules
        if not value(body, point)
    ]
    if not any(c.rule.startswith("layers") for c in broken):
        broken.extend(_memory_clash(domains, layout))
    return tuple(broken)


def clash(rule: Rule, facts: Facts, point: Mapping[str, int]) -> Clash:
    """Fill a rule's sentence with the problem's constants and a point's axes."""
    shown = ", ".join(
        f"{n}={axis_label(n, point[n])}" for n in DECIDED if n in words(rule.sentence)
    )
    sentence = rule.sentence.format(**facts.constants)
    return Clash(
        rule=rule.id, sentence=f"{sentence}; got {shown}" if shown else sentence
    )


def words(sentence: str) -> set[str]:
    """Return the words of a sentence, to see which axes it names."""
    return set(sentence.replace(":", " ").replace(",", " ").replace(")", " ").split())


def _memory_clash(domains: Domains, layout: Layout) -> list[Clash]:
    worst = max(rank_peaks(domains, layout))
    limit = domains.problem.cluster.device.hbm_bytes
    return [memory_clash(worst, layout, limit)] if worst > limit else []


def memory_clash(peak: int, layout: Layout, limit: int) -> Clash:
    """Say by how many bytes the worst rank of a layout exceeds the device."""
    shown = " ".join(f"{n}={axis_label(n, c)}" for n, c in layout.written().items())
    return Clash(
        rule="memory",
        sentence=f"the peak of every pipeline rank is at most what a process can use "
        f"on the device, {limit:,} bytes; got {peak:,} bytes, {peak - limit:,} too "
        f"many, with {shown}",
    )


def rank_peaks(
    domains: Domains, layout: Layout, memory: Peaks | None = None
) -> tuple[int, ...]:
    """Return the peak bytes of every pipeline rank.

    ``memory`` is the problem's, if it is at hand; building it anew costs more than
    the answer.
    """
    from .peaks import Peaks

    memory, point = memory or Peaks(domains), layout.point()
    peaks = [memory.peak(rank) for rank in memory.ranks(memory.key(point))]
    return values(peaks, point)


def evaluate(problem: Problem, layout: Layout) -> Choice:
    """Return memory and projection of one layout, legal or not in the space.

    The step time is the simulated one.
    """
    from .scoring import Scores

    domains = domains_of(problem, layout)
    per_rank = rank_peaks(domains, layout)
    projection = Scores(problem).simulated([layout])[0]
    return Choice(
        layout=layout,
        memory=Memory(peak_bytes=max(per_rank), per_rank=per_rank),
        projection=projection,
    )


def ledger(problem: Problem, layout: Layout, rank: int) -> list[tuple[Item, int]]:
    """Return the items alive at the peak of one pipeline rank, in bytes."""
    from .peaks import Peaks

    if not 0 <= rank < layout.pp:
        raise InputError(f"a pipeline rank is in 0..{layout.pp - 1}, got {rank}")
    memory = Peaks(domains_of(problem, layout))
    point = layout.point()
    stage, held = memory.ranks(memory.key(point))[rank]
    return list(memory.model.ledger_at(stage, held, point))
