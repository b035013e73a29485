"""From what a user writes to a problem and a space.

The command line and the Python functions both come through here, so that both
accept and refuse the same.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..models.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.architecture import Architecture
    from ..models.cluster import Cluster
    from ..models.problem import Problem
    from ..solver.space import Space

#: One value of an axis as a user writes it.
Value = int | bool | str
DEFAULT_DIALECT = "megatron@0.16"
DEFAULT_OPTIMIZER = "megatron-adam"
DEFAULT_PRECISION = "bf16"
MOST_ROWS = 100_000


@dataclass(frozen=True, kw_only=True)
class Request:
    """One question in the user's words.

    Attributes
    ----------
    model
        A catalogue name, a ``config.json`` or its folder, a YAML file, or the value.
    cluster
        ``NODESxGPUS:DEVICE``, a name, a YAML file, or the value.
    seq_len, global_batch
        Tokens of a sequence; sequences of one step over all devices.
    pins
        For some axes the one value allowed.
    axes
        For some axes the values that replace those of the space.
    max_gpus
        Devices to use at most; None for all of them.
    space
        A shipped space's name or a YAML file.
    stack
        A shipped stack layer for the step times; empty for the device's own profile.
    """

    model: str | Path | Architecture
    cluster: str | Path | Cluster
    seq_len: int
    global_batch: int
    dialect: str = DEFAULT_DIALECT
    precision: str = DEFAULT_PRECISION
    optimizer: str = DEFAULT_OPTIMIZER
    pins: Mapping[str, Value] = field(default_factory=dict)
    axes: Mapping[str, Value | Iterable[Value]] = field(default_factory=dict)
    max_gpus: int | None = None
    space: str = "default"
    stack: str = ""

    def problem(self) -> Problem:
        """Look everything up and check it.

        Raises
        ------
        InputError
            If a name is unknown, a file unreadable, or a size out of range.
        """
        from ..models.problem import Problem, Training

        training = Training(
            seq_len=whole("the sequence length", self.seq_len),
            global_batch=whole("the global batch", self.global_batch),
            precision=text("the precision", self.precision),
            optimizer=text("the optimizer", self.optimizer),
        )
        cluster = self._cluster()
        if self.max_gpus is not None:
            cluster = trim(cluster, whole("max-gpus", self.max_gpus))
        return Problem(
            architecture=self._architecture(),
            cluster=cluster,
            training=training,
            dialect=_dialect(text("the dialect", self.dialect)),
            pins={n: (code_of(n, v),) for n, v in self.pins.items()},
            stack=text("the stack", self.stack),
        )

    def in_space(self) -> Space:
        """Load the space and replace the axes that were given."""
        from ..solver.space import load_space

        space = load_space(text("the space", self.space))
        for name, given in self.axes.items():
            if isinstance(given, str) or not isinstance(given, Iterable):
                codes: tuple[int, ...] = (code_of(name, given),)
            else:
                codes = tuple(code_of(name, value) for value in given)
            space = space.restrict(name, codes)
        return space

    def partial(self) -> dict[str, int]:
        """Return the pins as codes, for a single layout."""
        return {n: code_of(n, v) for n, v in self.pins.items()}

    def _architecture(self) -> Architecture:
        from ..models.architecture import Architecture

        if isinstance(self.model, Architecture):
            return self.model
        from ..models.catalogue import model

        return model(_text("the model", self.model))

    def _cluster(self) -> Cluster:
        from ..models.cluster import Cluster

        if isinstance(self.cluster, Cluster):
            return self.cluster
        from ..models.catalogue import cluster

        return cluster(_text("the cluster", self.cluster))


def trim(cluster: Cluster, max_gpus: int) -> Cluster:
    """Keep at most ``max_gpus`` devices: whole nodes, or a part of one node.

    Raises
    ------
    InputError
        If no device is left.
    """
    if max_gpus < 1:
        raise InputError(f"max-gpus must be at least 1, got {max_gpus:,}")
    if max_gpus >= cluster.world_size:
        return cluster
    nodes = max_gpus // cluster.gpus_per_node
    if nodes:
        return replace(cluster, nodes=nodes)
    from ..models.catalogue.machines import fitted

    part = fitted(cluster.fabric, max_gpus)
    return replace(cluster, nodes=1, gpus_per_node=max_gpus, fabric=part)


def code_of(name: str, value: Value) -> int:
    """Read one value of an axis, as the command line or a Python caller gives it.

    Raises
    ------
    InputError
        If the axis does not exist or is derived, or the value is none of it.
    """
    # Imported here because arrays come with it, and help must not wait for them.
    from ..models.layout import DECIDED, DERIVED, axis_code

    if name in DERIVED:
        raise InputError(
            f"{name} follows from the other axes and cannot be given; give some of "
            f"{', '.join(DECIDED[:7])} instead"
        )
    return axis_code(name, str(value))


def assignment(option: str, text: str) -> tuple[str, str]:
    """Split ``AXIS=VALUE`` as it stands behind an option.

    Raises
    ------
    InputError
        If there is no ``=`` or a side is empty.
    """
    name, equals, value = text.partition("=")
    name, value = name.strip().lower(), value.strip()
    if not (equals and name and value):
        raise InputError(
            f"{option} takes AXIS=VALUE, for example {option} tp=8, got {text[:60]!r}"
        )
    return name, value


def whole(what: str, value: object) -> int:
    """Check that a Python caller gave a whole number; one of numpy's is taken too.

    Raises
    ------
    InputError
        If it is something else.
    """
    if not isinstance(value, bool | str):
        with suppress(TypeError):
            return operator.index(value)  # type: ignore[arg-type]
    raise InputError(f"{what} must be a whole number, got {str(value)[:60]!r}")


def text(what: str, value: object) -> str:
    """Check that a Python caller gave text.

    Raises
    ------
    InputError
        If it is something else.
    """
    if not isinstance(value, str):
        raise InputError(f"{what} must be text, got {str(value)[:60]!r}")
    return value


def _text(what: str, given: object) -> str:
    found = str(given) if isinstance(given, Path) else text(what, given)
    if not found.strip() or "\0" in found:
        raise InputError(f"{what} must be a name or a file, got {found[:60]!r}")
    return found


def _dialect(text: str) -> str:
    from ..solver.rules import parse_dialect

    return "@".join(parse_dialect(text))


def rows(number: int, *, least: int) -> int:
    """Check how many rows are asked for.

    Raises
    ------
    InputError
        If it is fewer than ``least`` or more than fit on any screen.
    """
    if not least <= whole("top", number) <= MOST_ROWS:
        raise InputError(
            f"top must be a whole number in {least}..{MOST_ROWS:,}, got {number:,}"
        )
    return number
