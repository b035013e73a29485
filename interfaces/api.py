"""The commands as Python functions: the same words in, values out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .request import (
    DEFAULT_DIALECT,
    DEFAULT_OPTIMIZER,
    DEFAULT_PRECISION,
    Request,
    Value,
    rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from ..models.architecture import Architecture
    from ..models.cluster import Cluster
    from ..solver.answer import Answer, Infeasible
    from ..solver.feasible import Engine, FeasibleSet
    from .one import MemoryReport

    ModelLike = str | Path | Architecture
    ClusterLike = str | Path | Cluster
    ReportProgress = Callable[[str, int, int], None]


def plan(
    model: ModelLike,
    cluster: ClusterLike,
    *,
    seq_len: int,
    global_batch: int,
    dialect: str = DEFAULT_DIALECT,
    precision: str = DEFAULT_PRECISION,
    pins: Mapping[str, Value] | None = None,
    axes: Mapping[str, Value | Iterable[Value]] | None = None,
    max_gpus: int | None = None,
    optimizer: str = DEFAULT_OPTIMIZER,
    space: str = "default",
    stack: str = "",
    top: int = 10,
    progress: ReportProgress | None = None,
) -> Answer | Infeasible:
    """Find the fastest configurations that fit, with the proof.

    Parameters
    ----------
    model
        A catalogue name, a ``config.json`` or its folder, a YAML file, or an
        ``Architecture``.
    cluster
        ``NODESxGPUS:DEVICE`` such as ``8x8:h100``, a name, a YAML file, or a
        ``Cluster``.
    seq_len, global_batch
        Tokens of a sequence; sequences of one step over all devices.
    dialect
        Whose rules must be met, such as ``megatron@0.16``.
    precision
        Number format of the matrix products.
    pins
        For some axes the one value allowed, such as ``{"tp": 8}``.
    axes
        For some axes the values that replace the space's, such as ``{"vpp": [1, 2]}``.
    max_gpus
        Devices to use at most: whole nodes, or a part of one node.
    optimizer
        Recipe of bytes per parameter.
    space
        A shipped space or a YAML file.
    stack
        A stack layer fitted to published steps, such as ``nemo-hopper-dense``, for
        calibrated step times; empty for the device's own profile.
    top
        Configurations to return at most.
    progress
        Called with a text, what is done, and how much there is.

    Returns
    -------
    Answer or Infeasible
        The fastest configurations with a certificate, or the proof that there is
        none.

    Raises
    ------
    InputError
        If a name is unknown, a file unreadable, or a value out of range.
    """
    from ..solver.plan import plan as solve

    request = Request(
        model=model,
        cluster=cluster,
        seq_len=seq_len,
        global_batch=global_batch,
        dialect=dialect,
        precision=precision,
        optimizer=optimizer,
        pins=pins or {},
        axes=axes or {},
        max_gpus=max_gpus,
        space=space,
        stack=stack,
    )
    number = rows(top, least=1)
    return solve(request.problem(), request.in_space(), top=number, progress=progress)


def project(
    model: ModelLike,
    cluster: ClusterLike,
    *,
    seq_len: int,
    global_batch: int,
    layout: Mapping[str, Value],
    dialect: str = DEFAULT_DIALECT,
    precision: str = DEFAULT_PRECISION,
    max_gpus: int | None = None,
    optimizer: str = DEFAULT_OPTIMIZER,
    stack: str = "",
) -> Answer | Infeasible:
    """Project one configuration: an answer with one row, or the rules it breaks.

    Parameters
    ----------
    layout
        The axes that differ from a plain launch, such as ``{"tp": 8, "pp": 4}``.
    model, cluster, seq_len, global_batch, dialect, precision, max_gpus, optimizer
        As for ``plan``.
    stack
        As for ``plan``.

    Raises
    ------
    InputError
        As ``plan``, and if the sizes do not multiply to the cluster or do not divide
        the batch.
    """
    from .one import project_one

    return project_one(
        Request(
            model=model,
            cluster=cluster,
            seq_len=seq_len,
            global_batch=global_batch,
            dialect=dialect,
            precision=precision,
            optimizer=optimizer,
            pins=layout,
            max_gpus=max_gpus,
            stack=stack,
        )
    )


def memory(
    model: ModelLike,
    cluster: ClusterLike,
    *,
    seq_len: int,
    global_batch: int,
    layout: Mapping[str, Value],
    rank: int | None = None,
    dialect: str = DEFAULT_DIALECT,
    precision: str = DEFAULT_PRECISION,
    max_gpus: int | None = None,
    optimizer: str = DEFAULT_OPTIMIZER,
) -> MemoryReport | Infeasible:
    """List what lies in memory at the peak of one configuration.

    Parameters
    ----------
    layout
        The axes that differ from a plain launch.
    rank
        The pipeline rank to list; the fullest if None.
    model, cluster, seq_len, global_batch, dialect, precision, max_gpus, optimizer
        As for ``plan``.

    Returns
    -------
    MemoryReport or Infeasible
        The bytes, whether they fit or not; the rules that are broken, if any.

    Raises
    ------
    InputError
        As ``project``, and if there is no such rank.
    """
    from .one import memory_one

    return memory_one(
        Request(
            model=model,
            cluster=cluster,
            seq_len=seq_len,
            global_batch=global_batch,
            dialect=dialect,
            precision=precision,
            optimizer=optimizer,
            pins=layout,
            max_gpus=max_gpus,
        ),
        rank,
    )


def enumerate_feasible(
    model: ModelLike,
    cluster: ClusterLike,
    *,
    seq_len: int,
    global_batch: int,
    dialect: str = DEFAULT_DIALECT,
    precision: str = DEFAULT_PRECISION,
    pins: Mapping[str, Value] | None = None,
    axes: Mapping[str, Value | Iterable[Value]] | None = None,
    max_gpus: int | None = None,
    optimizer: str = DEFAULT_OPTIMIZER,
    space: str = "default",
    engine: Engine = "vector",
    rules_only: bool = False,
    progress: ReportProgress | None = None,
) -> FeasibleSet:
    """Return every configuration that the rules allow and that fits.

    Parameters
    ----------
    engine
        ``vector``, ``cpsat`` (the model of record) or ``both`` to compare them.
    rules_only
        Leave memory out.
    model, cluster, seq_len, global_batch, dialect, precision, pins, axes, max_gpus
        As for ``plan``.
    optimizer, space, progress
        As for ``plan``.

    Raises
    ------
    InputError
        As ``plan``.
    """
    from ..solver.feasible import enumerate_feasible as solve

    request = Request(
        model=model,
        cluster=cluster,
        seq_len=seq_len,
        global_batch=global_batch,
        dialect=dialect,
        precision=precision,
        optimizer=optimizer,
        pins=pins or {},
        axes=axes or {},
        max_gpus=max_gpus,
        space=space,
    )
    return solve(
        request.problem(),
        request.in_space(),
        engine=engine,
        rules_only=rules_only,
        progress=progress,
    )
