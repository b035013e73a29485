"""What is asked for: an objective, and limits on any figure of a plan.

On one cluster with one batch every objective is a multiple of the step time, so that
a bound of the step time bounds them all; they differ between cluster sizes.

Letters: g devices, t tokens of a step, s seconds of a step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...models.errors import InputError, unknown_name
from ...models.units import GIB

if TYPE_CHECKING:
    from ...models.problem import Problem

#: Objectives by the name a user types, with their unit.
OBJECTIVES = {
    "tokens": "tokens/s/GPU",
    "step-time": "s",
    "train-time": "s",
    "cost": "per token",
    "energy": "J per token",
}
#: Figures that a limit can be put on, and whether it is a least or a most.
LIMITED = {
    "tokens": ">=",
    "mfu": ">=",
    "headroom": ">=",
    "step-time": "<=",
    "train-time": "<=",
    "cost": "<=",
    "energy": "<=",
    "gpus": "<=",
}
_UNITS = {"": 1.0, "gib": float(GIB), "gb": 1e9, "s": 1.0, "h": 3600.0, "d": 86400.0}
_LIMIT = re.compile(r"([a-z-]+)\s*(<=|>=)\s*([0-9.]+(?:e[+-]?\d+)?)\s*([a-z]*)")


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What devices and a whole training cost.

    Attributes
    ----------
    per_hour
        Price of one device for one hour; the catalogue's if None.
    watts
        Power of one device; the catalogue's if None.
    train_tokens
        Tokens of the whole training, None if not asked for.
    """

    per_hour: float | None = None
    watts: float | None = None
    train_tokens: float | None = None


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A least or a most of one figure, in SI units."""

    name: str
    value: float

    @property
    def text(self) -> str:
        """Write it as a user does."""
        return f"{self.name}{LIMITED[self.name]}{self.value:g}"


def limit(text: str) -> Limit:
    """Read a limit such as ``step-time<=10``, ``headroom>=4GiB`` or ``gpus<=512``.

    Raises
    ------
    InputError
        If it is not of this form, names no figure, or bounds it from the wrong side.
    """
    found = _LIMIT.fullmatch(text.strip().lower().replace("_", "-"))
    if not found:
        raise InputError(
            f"--where takes FIGURE<=NUMBER or FIGURE>=NUMBER, for example "
            f"headroom>=4GiB, got {text[:60]!r}"
        )
    name, sign, number, unit = found.groups()
    if name not in LIMITED:
        raise unknown_name("figure", name, LIMITED)
    if LIMITED[name] != sign:
        raise InputError(f"a limit on {name} is {name}{LIMITED[name]}..., got {text!r}")
    if unit not in _UNITS:
        raise unknown_name("unit", unit, [u for u in _UNITS if u])
    try:
        return Limit(name=name, value=float(number) * _UNITS[unit])
    except ValueError:
        raise InputError(f"a limit is a number, got {number!r}") from None


@dataclass(frozen=True, kw_only=True)
class Goal:
    """An objective with prices and limits.

    Attributes
    ----------
    objective
        One of ``OBJECTIVES``.
    prices
        Prices, power and tokens.
    limits
        Limits that every answer keeps.
    """

    objective: str = "tokens"
    prices: Prices = Prices()
    limits: tuple[Limit, ...] = ()

    def __post_init__(self) -> None:
        """Check the objective, and that its figures are given."""
        if self.objective not in OBJECTIVES:
            raise unknown_name("objective", self.objective, OBJECTIVES)

    def least(self, name: str) -> float:
        """Return the strictest limit on a figure, 0 or infinite where there is none."""
        own = [x.value for x in self.limits if x.name == name]
        if LIMITED[name] == ">=":
            return max(own, default=0.0)
        return min(own, default=float("inf"))

    def figure(self, name: str, problem: Problem, step_time: float) -> float:
        """Return a figure of a plan.

        Parameters
        ----------
        name
            One of ``OBJECTIVES``.
        problem
            Cluster and batch.
        step_time
            In seconds.

        Raises
        ------
        InputError
            If a price, a power or a number of tokens is needed and not known.
        """
        training, cluster = problem.training, problem.cluster
        tokens = training.global_batch * training.seq_len
        devices = cluster.world_size
        match name:
            case "step-time":
                return step_time
            case "tokens":
                return tokens / (step_time * devices)
            case "train-time":
                whole = _known("train-time", "--train-tokens", self.prices.train_tokens)
                return step_time * whole / tokens
            case "cost":
                per_hour = self.prices.per_hour or cluster.device.price_per_hour
                price = _known("cost", "--price", per_hour)
                return price * devices * step_time / 3600 / tokens
            case _:
                watts = self.prices.watts or cluster.device.power_watts
                power = _known("energy", "--watts", watts)
                return power * devices * step_time / tokens

    def cost(self, problem: Problem, step_time: float) -> float:
        """Return what is minimised: the objective, or its reciprocal for a rate."""
        value = self.figure(self.objective, problem, step_time)
        return 1 / value if self.objective == "tokens" else value

    def most_time(self, problem: Problem, model_flops: float) -> float:
        """Return the step time above which a limit is broken, in seconds."""
        cluster = problem.cluster
        peak = cluster.device.peak_flops[problem.training.precision]
        caps = [self.least("step-time")]
        if mfu := self.least("mfu"):
            caps.append(model_flops / (cluster.world_size * peak * mfu))
        if tokens := self.least("tokens"):
            caps.append(self.figure("tokens", problem, 1.0) / tokens)
        for name in ("train-time", "cost", "energy"):
            if any(x.name == name for x in self.limits):
                caps.append(self.least(name) / self.figure(name, problem, 1.0))
        return min(caps)


def _known(what: str, option: str, value: float | None) -> float:
    if not value or value <= 0:
        raise InputError(
            f"{what} needs a figure that the catalogue does not have: give {option}"
        )
    return value
