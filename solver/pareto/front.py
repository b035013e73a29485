"""What a front is: its points, their roles, and what was proven."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...models.problem import Problem
    from ..answer import Certificate, Choice

Role = Literal["", "end", "knee"]


@dataclass(frozen=True, kw_only=True)
class FrontPoint:
    """One configuration that no other one beats.

    Attributes
    ----------
    problem
        The problem it solves; its cluster is a part of the one asked about where
        sizes are weighed too.
    choice
        The configuration with its memory and projection.
    values
        Its objectives by name, in the units of ``objectives``.
    role
        ``end`` for the best of one objective, ``knee`` for the point farthest from
        the line between the ends.
    certificate
        What was proven about its cluster's configurations.
    """

    problem: Problem
    choice: Choice
    values: Mapping[str, float]
    role: Role
    certificate: Certificate


@dataclass(frozen=True, kw_only=True)
class Front:
    """A complete front.

    Attributes
    ----------
    problem
        What was asked.
    objectives
        Names of the objectives, the first one sorts the points.
    points
        The front; of configurations that are equal in every objective one is kept.
    simulated
        Configurations whose step time was simulated for it.
    feasible_count
        Configurations it is the front of.
    """

    problem: Problem
    objectives: tuple[str, ...]
    points: tuple[FrontPoint, ...]
    simulated: int
    feasible_count: int
