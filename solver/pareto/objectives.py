"""Objectives of a configuration: what each is, its unit, and which way is better.

At a fixed number of devices every objective falls or rises with the step time or with
the peak alone, so a front of (peak, step time) holds the fronts of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...models.errors import InputError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...models.problem import Problem

_HOUR = 3600.0
_MILLION = 1e6


@dataclass(frozen=True, kw_only=True)
class Objective:
    """One objective.

    Attributes
    ----------
    name, unit
        As tables and files print them.
    larger
        Whether more of it is better.
    value
        From the problem, peak bytes and step seconds.
    """

    name: str
    unit: str
    larger: bool
    value: Callable[[Problem, int, float], float]


def _tokens(problem: Problem) -> int:
    return problem.training.seq_len * problem.training.global_batch


def _gpu_seconds(problem: Problem, seconds: float) -> float:
    return problem.cluster.world_size * seconds


def _cost(problem: Problem, _: int, seconds: float) -> float:
    price = problem.cluster.device.price_per_hour
    if price is None:
        raise InputError(
            f"cost needs the price of a device hour, and {problem.cluster.device.name} "
            "has none; give --price"
        )
    dollars = _gpu_seconds(problem, seconds) / _HOUR * price
    return dollars / _tokens(problem) * _MILLION


def _energy(problem: Problem, _: int, seconds: float) -> float:
    watts = problem.cluster.device.power_watts
    if watts is None:
        raise InputError(
            f"energy needs the power of a device, and {problem.cluster.device.name} "
            "states none; choose another objective"
        )
    return _gpu_seconds(problem, seconds) * watts / _tokens(problem)


def _objective(
    name: str,
    unit: str,
    value: Callable[[Problem, int, float], float],
    *,
    larger: bool = False,
) -> Objective:
    return Objective(name=name, unit=unit, larger=larger, value=value)


#: Energy takes the board power for the whole step, an upper estimate.
OBJECTIVES = {
    o.name: o
    for o in (
        _objective("memory", "bytes at the peak", lambda _, peak, __: float(peak)),
        _objective("step-time", "s", lambda _, __, seconds: seconds),
        _objective(
            "throughput",
            "tokens/s/GPU",
            lambda p, _, seconds: _tokens(p) / _gpu_seconds(p, seconds),
            larger=True,
        ),
        _objective("gpus", "devices", lambda p, _, __: float(p.cluster.world_size)),
        _objective("cost", "per million tokens", _cost),
        _objective("energy", "J per token", _energy),
    )
}


def chosen(names: Sequence[str]) -> tuple[Objective, ...]:
    """Look objectives up by name.

    Raises
    ------
    InputError
        If a name is unknown or given twice, or there are fewer than two.
    """
    for name in names:
        if name not in OBJECTIVES:
            raise unknown_name("objective", name, OBJECTIVES)
    if len(set(names)) != len(names) or len(names) < 2:
        raise InputError(
            f"a front needs two different objectives or more, got {', '.join(names)}"
        )
    return tuple(OBJECTIVES[name] for name in names)
