"""What the user asked for beyond the rules: values of axes that can be given up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ...models.layout import axis_label
from ..domains import bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..domains import Domains
    from ..space import Space


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A pin, or values that replace those of a space, as a constraint.

    ``allowed`` are the codes asked for, ``others`` those of the space besides them.
    """

    kind: Literal["pin", "axis"]
    axis: str
    allowed: tuple[int, ...]
    others: tuple[int, ...]

    @property
    def id(self) -> str:
        """Name in conflicts and corrections, such as ``pin:tp``."""
        return f"{self.kind}:{self.axis}"

    @property
    def sentence(self) -> str:
        """What was asked, and what the space has besides."""
        asked = "/".join(axis_label(self.axis, c) for c in self.allowed)
        rest = ", ".join(axis_label(self.axis, c) for c in self.others[:6])
        more = ", ..." if len(self.others) > 6 else ""
        how = "pinned" if self.kind == "pin" else "all that --axis leaves"
        return f"{self.axis}={asked} is {how}; the space also has {rest}{more}"


@dataclass(frozen=True, kw_only=True)
class Request:
    """A problem with its limits lifted, and the limits.

    Attributes
    ----------
    asked
        The problem over its space, limits in force.
    wide
        The same with every limit lifted.
    limits
        The limits that leave something out.
    """

    asked: Domains
    wide: Domains
    limits: tuple[Limit, ...]

    def values(self, broken: frozenset[str]) -> dict[str, tuple[int, ...]]:
        """Return the codes of the axes where just these limits are broken."""
        values = dict(self.wide.values)
        for limit in self.limits:
            values[limit.axis] = limit.others if limit.id in broken else limit.allowed
        return values


def lift(domains: Domains, base: Space | None = None) -> Request:
    """Lift the pins of a problem, and what replaced the values of ``base``.

    Parameters
    ----------
    domains
        The problem over its space.
    base
        The space before axes were replaced; that of ``domains`` if None.
    """
    problem, space = domains.problem, domains.space
    base = base or space
    free = replace(problem, pins={})
    kinds: Mapping[str, Literal["pin", "axis"]] = {
        **{n: "axis" for n, v in space.axes.items() if v != base.axes.get(n)},
        **{n: "pin" for n in problem.pins},
    }
    axes, limits = dict(base.axes), []
    for name, kind in kinds.items():
        allowed = domains.values[name]
        known = {*base.values(name, free), *space.values(name, free)}
        others = tuple(sorted(known - set(allowed)))
        axes[name] = tuple(sorted(known))
        if others:
            limit = Limit(kind=kind, axis=name, allowed=allowed, others=others)
            limits.append(limit)
    if not limits:
        return Request(asked=domains, wide=domains, limits=())
    wide = replace(base, axes=axes)
    return Request(asked=domains, wide=bind(free, wide), limits=tuple(limits))
