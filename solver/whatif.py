"""Planning for machines that do not exist: quantities varied, the plan made anew."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..models.errors import InputError, unknown_name
from ..models.units import FlopsPerSecond
from .answer import Answer
from .domains import NothingDividesError
from .plan import plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..models.cluster import Cluster
    from ..models.problem import Problem
    from .space import Space

    Progress = Callable[[str, int, int], None]

#: Quantities that can be varied, and the kind of their values.
QUANTITIES = {
    "device.hbm_bytes": "bytes",
    "device.hbm_bandwidth": "bytes/s",
    "device.host_bandwidth": "bytes/s",
    "device.peak_flops": "FLOP/s",
    "fabric.scale_up_bandwidth": "bytes/s",
    "fabric.scale_up_latency": "s",
    "fabric.nic_bandwidth": "bytes/s",
    "fabric.nic_latency": "s",
    "fabric.oversubscription": "",
    "cluster.nodes": "whole",
}
#: Resources whose elasticity says what binds.
RESOURCES = (
    "device.peak_flops",
    "device.hbm_bytes",
    "device.hbm_bandwidth",
    "fabric.scale_up_bandwidth",
    "fabric.nic_bandwidth",
)
MOST_CASES = 1000
_STEP = 1.1


@dataclass(frozen=True, kw_only=True)
class Case:
    """One machine.

    Attributes
    ----------
    values
        The varied quantities, in SI units.
    problem
        The problem on that machine.
    answer
        The fastest configuration with its proof, None if nothing fits.
    """

    values: Mapping[str, float]
    problem: Problem
    answer: Answer | None

    @property
    def tokens_per_s(self) -> float:
        """Tokens of all devices a second, 0 if nothing fits."""
        if self.answer is None:
            return 0.0
        speed = self.answer.answers[0].projection.tokens_per_s_per_gpu
        return speed * self.problem.cluster.world_size

    @property
    def price_per_hour(self) -> float:
        """Price of the cluster an hour; where no price is known, its devices."""
        cluster = self.problem.cluster
        return cluster.world_size * (cluster.device.price_per_hour or 1.0)


def cases(
    problem: Problem,
    space: Space,
    varied: Mapping[str, Sequence[float]],
    progress: Progress | None = None,
) -> list[Case]:
    """Plan for every combination of the varied quantities.

    Parameters
    ----------
    problem, space
        What is asked.
    varied
        For names of ``QUANTITIES`` the values, in SI units.
    progress
        Called with a text, what is done, and how much there is.

    Raises
    ------
    InputError
        If a quantity is unknown, a value impossible, or there are too many cases.
    """
    for name in varied:
        if name not in QUANTITIES:
            raise unknown_name("quantity", name, QUANTITIES)
    number = math.prod(len(values) for values in varied.values())
    if number > MOST_CASES:
        raise InputError(
            f"at most {MOST_CASES:,} machines are planned at once, got {number:,}; "
            "give fewer values"
        )
    found = []
    for done, values in enumerate(itertools.product(*varied.values()), 1):
        case = dict(zip(varied, values, strict=True))
        found.append(_case(problem, space, case))
        if progress:
            progress("machines", done, number)
    return found


def elasticities(
    problem: Problem, space: Space, progress: Progress | None = None
) -> dict[str, float]:
    """Return by how many percent the speed grows with 1 % more of each resource.

    Notes
    -----
    d ln(tokens/s) / d ln(resource), a central difference between 1/1.1 and 1.1 times
    the resource, the best configuration chosen anew at both. 0 where nothing fits.
    """
    found = {}
    for done, name in enumerate(RESOURCES, 1):
        base = quantity(problem, name)
        low, high = (
            _case(problem, space, {name: base * f}).tokens_per_s
            for f in (1 / _STEP, _STEP)
        )
        known = low > 0 and high > 0
        found[name] = math.log(high / low) / (2 * math.log(_STEP)) if known else 0.0
        if progress:
            progress("resources", done, len(RESOURCES))
    return found


def cheapest(found: Sequence[Case], tokens_per_s: float) -> Case | None:
    """Return the cheapest machine that reaches a speed, the faster one of equals."""
    reaching = [case for case in found if case.tokens_per_s >= tokens_per_s]
    return min(
        reaching, key=lambda c: (c.price_per_hour, -c.tokens_per_s), default=None
    )


def quantity(problem: Problem, name: str) -> float:
    """Return a quantity of a problem's cluster, in SI units."""
    part, field = name.split(".")
    cluster = problem.cluster
    if name == "device.peak_flops":
        return float(cluster.device.peak_flops[problem.training.precision])
    owner = {"device": cluster.device, "fabric": cluster.fabric, "cluster": cluster}
    return float(getattr(owner[part], field))


def varied_cluster(problem: Problem, name: str, value: float) -> Cluster:
    """Return the problem's cluster with one quantity replaced.

    ``device.peak_flops`` is that of the training's precision; the other formats keep
    their ratio to it.

    Raises
    ------
    InputError
        If the value is impossible.
    """
    cluster, (part, field) = problem.cluster, name.split(".")
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} must be a positive number, got {value:g}")
    if name == "cluster.nodes":
        return replace(cluster, nodes=int(value))
    if name == "device.peak_flops":
        factor = value / quantity(problem, name)
        peaks = {
            k: FlopsPerSecond(v * factor) for k, v in cluster.device.peak_flops.items()
        }
        return replace(cluster, device=replace(cluster.device, peak_flops=peaks))
    if part == "device":
        whole = int(value) if field == "hbm_bytes" else value
        return replace(cluster, device=replace(cluster.device, **{field: whole}))  # type: ignore[arg-type]
    return replace(cluster, fabric=replace(cluster.fabric, **{field: value}))  # type: ignore[arg-type]


def _case(problem: Problem, space: Space, values: Mapping[str, float]) -> Case:
    asked = problem
    for name, value in values.items():
        asked = replace(asked, cluster=varied_cluster(asked, name, value))
    try:
        found = plan(asked, space, top=1)
    except NothingDividesError:
        return Case(values=values, problem=asked, answer=None)
    answer = found if isinstance(found, Answer) else None
    return Case(values=values, problem=asked, answer=answer)
