"""The space of configurations: a named, versioned file of axes and values."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..models.errors import InputError, unknown_name
from ..models.layout import (
    AXES,
    CROSS_ENTROPIES,
    DECIDED,
    NAMED_AXES,
    OPTIONAL,
    PRECISIONS,
    axis_code,
    axis_label,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.problem import Problem

_MAX_FILE = 1_000_000
_SIZES = ("seq_len", "global_batch")
_WORKLOAD = ("model", "cluster", *_SIZES, "dialect", "precision", "optimizer")


@dataclass(frozen=True)
class Divisors:
    """Values of an axis that follow the problem: divisors of a size, up to a limit."""

    of: str
    limit: int

    def values(self, problem: Problem) -> tuple[int, ...]:
        """Return the divisors for one problem, ascending."""
        moe = problem.architecture.moe
        sizes = {
            "world": problem.cluster.world_size,
            "experts": moe.experts if moe else 1,
        }
        size = sizes[self.of]
        return tuple(d for d in range(1, min(size, self.limit) + 1) if size % d == 0)


@dataclass(frozen=True)
class Tolerance:
    """Global batches that differ from the training's by at most some percent."""

    percent: int

    def values(self, problem: Problem) -> tuple[int, ...]:
        """Return every whole number inside, ascending."""
        batch = problem.training.global_batch
        least = -(-batch * (100 - self.percent) // 100)
        return tuple(range(max(least, 1), batch * (100 + self.percent) // 100 + 1))


Values = tuple[int, ...] | Divisors | Tolerance


@dataclass(frozen=True, kw_only=True)
class Space:
    """Axes with their values, and the advice rules that are enforced.

    ``axes`` gives for each axis of ``models.layout.DECIDED``, and for those of
    ``OPTIONAL`` that have more than their default, the codes or a rule for them.
    ``workload`` names what the space was written for: model, cluster, seq_len,
    global_batch, and dialect, precision or optimizer where they are not the usual
    ones; it is no part of the content that the hash covers.
    """

    name: str
    version: int
    axes: Mapping[str, Values]
    advice: tuple[str, ...]
    workload: Mapping[str, str | int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Freeze the axes and check that every one is there."""
        missing = [n for n in DECIDED if n not in self.axes]
        if missing:
            raise InputError(
                f"space {self.name} must list every axis, got none for "
                f"{', '.join(missing)}; copy the line from the default space"
            )
        object.__setattr__(self, "axes", MappingProxyType(dict(self.axes)))
        object.__setattr__(self, "workload", MappingProxyType(dict(self.workload)))

    @property
    def label(self) -> str:
        """Name and version, as certificates print it."""
        return f"{self.name}@{self.version}"

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the content, the same on every machine."""
        content = {
            "axes": {n: _plain(values) for n, values in self.axes.items()},
            "advice": sorted(self.advice),
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def restrict(self, name: str, codes: tuple[int, ...]) -> Space:
        """Replace the values of one axis."""
        if name not in AXES:
            raise unknown_name("axis", name, AXES)
        if not codes:
            raise InputError(f"axis {name} needs at least 1 value, got none")
        return replace(self, axes={**self.axes, name: tuple(sorted(set(codes)))})

    def values(self, name: str, problem: Problem) -> tuple[int, ...]:
        """Return the codes of one axis for a problem, pins applied.

        Raises
        ------
        InputError
            If a pin lies outside the axis.
        """
        axis = self.axes.get(name) or (default_code(name, problem),)
        codes = axis if isinstance(axis, tuple) else axis.values(problem)
        pinned = problem.pins.get(name)
        if pinned is None:
            return codes
        outside = [axis_label(name, p) for p in pinned if p not in codes]
        if outside:
            shown = ", ".join(axis_label(name, c) for c in codes[:16])
            raise InputError(
                f"a pin must be one of its axis's values, got {name}="
                f"{outside[0]}; {name} has {shown}"
                f"{', ...' if len(codes) > 16 else ''} (--axis changes them)"
            )
        return tuple(sorted(set(pinned)))


def default_code(name: str, problem: Problem) -> int:
    """Return the code of an optional axis that a space does not list."""
    training = problem.training
    match name:
        case "gbs":
            return training.global_batch
        case "precision":
            return PRECISIONS.index(training.precision)
        case "cross_entropy":
            return CROSS_ENTROPIES.index(training.cross_entropy)
        case _:
            return OPTIONAL[name]


def _plain(values: Values) -> object:
    if isinstance(values, Tolerance):
        return {"tolerance": values.percent}
    if isinstance(values, Divisors):
        return {"divisors": values.of, "limit": values.limit}
    return list(values)


def load_space(source: str = "default") -> Space:
    """Load a shipped space by name, or a user's space from a YAML file.

    Raises
    ------
    InputError
        If there is no such space or the file is not one.
    """
    shipped = files("shardproof.solver").joinpath("spaces")
    known = {p.name.removesuffix(".yaml"): p for p in shipped.iterdir()}
    if source in known:
        return _parse(known[source].read_text("utf-8"), source)
    path = Path(source)
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        raise unknown_name("space", source, known)
    if path.stat().st_size > _MAX_FILE:
        raise InputError(f"a space file has at most {_MAX_FILE:,} bytes, got {path}")
    return _parse(path.read_text("utf-8", "replace"), str(path))


def _parse(text: str, label: str) -> Space:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = yaml.load(text, loader)
    except yaml.YAMLError as error:
        line = str(error).splitlines()[0]
        raise InputError(f"space {label} is not YAML: {line}") from None
    if not isinstance(data, dict):
        raise InputError(f"space {label} must be a mapping with name, version, axes")
    extra = set(data) - {"name", "version", "axes", "advice", "workload"}
    if extra or not isinstance(data.get("axes"), dict):
        raise InputError(
            f"space {label} has name, version, axes and advice, and may have a "
            f"workload, got "
            f"{', '.join(map(str, sorted(map(str, data))))[:120]}"
        )
    axes = {str(n): _values(str(n), v) for n, v in data["axes"].items()}
    return Space(
        name=str(data.get("name", label)),
        version=_whole(data.get("version", 1), "the version of a space"),
        axes=axes,
        advice=tuple(str(a) for a in data.get("advice") or ()),
        workload=_workload(data.get("workload") or {}),
    )


def _workload(given: Any) -> dict[str, str | int]:
    if isinstance(given, dict) and set(map(str, given)) <= set(_WORKLOAD):
        return {
            str(name): _whole(value, name) if name in _SIZES else str(value)
            for name, value in given.items()
        }
    raise InputError(
        f"the workload of a space names {', '.join(_WORKLOAD)}, got {str(given)[:60]!r}"
    )


def _values(name: str, given: Any) -> Values:
    if name not in AXES:
        raise unknown_name("axis", name, AXES)
    if isinstance(given, list) and given:
        return tuple(sorted({axis_code(name, str(v)) for v in given}))
    if isinstance(given, dict) and set(given) == {"range"}:
        ends = given["range"]
        if isinstance(ends, list) and len(ends) == 2 and name not in NAMED_AXES:
            low, high = (_whole(v, f"a bound of {name}") for v in ends)
            if low <= high <= low + 4096:
                return tuple(range(low, high + 1))
    if isinstance(given, dict) and set(given) == {"divisors", "limit"}:
        of = given["divisors"]
        if of == "world" or of == "experts":
            return Divisors(of, _whole(given["limit"], "a limit"))
    if isinstance(given, dict) and set(given) == {"tolerance"} and name == "gbs":
        percent = _whole(given["tolerance"], "a tolerance in percent")
        if percent < 100:
            return Tolerance(percent)
    raise InputError(
        f"axis {name} of a space is a list of values, {{range: [low, high]}}, "
        f"{{divisors: world, limit: n}} or, for gbs, {{tolerance: percent}}, got "
        f"{str(given)[:60]!r}"
    )


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**26:
        raise InputError(f"{what} must be a whole number of at least 1, got {value!r}")
    return value
