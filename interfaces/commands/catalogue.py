"""``shardproof catalogue``: what is known by name, with its sources."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...models.catalogue import (
    KINDS,
    add,
    architecture,
    cluster,
    device,
    fabric,
    names,
    to_yaml,
)
from ...models.errors import InputError, unknown_name
from ...models.parameters import parameter_count
from ...models.units import GIB
from ..document import CATALOGUE, Document, plain
from ..document import architecture as shape
from ..document import cluster as machine
from ..table import Column, Table
from .report import OK, finish

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...models.architecture import Architecture
    from ...models.catalogue import Kind
    from ...models.cluster import Cluster, Device, Fabric

_READERS: dict[Kind, Callable[[str], Any]] = {
    "models": architecture,
    "devices": device,
    "clusters": cluster,
    "fabrics": fabric,
}


def run(words: tuple[str, ...], *, as_json: bool) -> int:
    """List, show or add, print, and return the exit code.

    Parameters
    ----------
    words
        Nothing for all, a kind, a name, a kind and a name, or ``add FILE``.
    """
    match words:
        case ():
            return _list(KINDS, as_json=as_json)
        case ("add", file):
            return _add(file)
        case (kind,) if kind in KINDS:
            return _list(_kinds(kind), as_json=as_json)
        case (name,) if name != "add":
            return _show(name, KINDS, as_json=as_json)
        case (kind, name) if kind in KINDS:
            return _show(name, _kinds(kind), as_json=as_json)
    raise InputError(
        "catalogue takes nothing, a kind (models, devices, fabrics, clusters), a name, "
        f"a kind and a name, or add FILE; got {' '.join(words)[:80]!r}"
    )


def _kinds(word: str) -> tuple[Kind, ...]:
    return tuple(kind for kind in KINDS if kind == word)


def _list(kinds: tuple[Kind, ...], *, as_json: bool) -> int:
    document: Document = {"schema": CATALOGUE}
    tables = []
    counts = []
    for kind in kinds:
        found = [_READERS[kind](name) for name in names(kind)]
        document[kind] = [_FORMS.get(kind, plain)(entry) for entry in found]
        tables.append(_TABLES[kind](found))
        counts.append(f"{len(found)} {kind}")
    finish(
        document,
        title=", ".join(counts),
        tables=tables,
        text="shardproof catalogue NAME shows an entry whole, with its sources.",
        as_json=as_json,
    )
    return OK


def _add(file: str) -> int:
    target = add(Path(file))
    print(f"added {target.stem}; shardproof catalogue {target.stem} shows it")
    return OK


def _show(name: str, kinds: tuple[Kind, ...], *, as_json: bool) -> int:
    holding = [k for k in kinds if name.strip().lower() in names(k)]
    if not holding:
        kind = kinds[0].removesuffix("s") if len(kinds) == 1 else "entry"
        raise unknown_name(kind, name, [n for k in kinds for n in names(k)])
    document: Document = {"schema": CATALOGUE}
    texts = []
    for kind in holding:
        entry = _READERS[kind](name)
        texts.append(to_yaml(entry).rstrip())
        document[kind] = [_FORMS.get(kind, plain)(entry)]
    finish(
        document,
        title=f"{name}: {' and '.join(k.removesuffix('s') for k in holding)}",
        text="\n\n".join(texts),
        as_json=as_json,
    )
    return OK


def _model(value: Architecture) -> Document:
    return {**shape(value), "parameters": parameter_count(value)}


_FORMS: dict[str, Callable[[Any], Document]] = {"models": _model, "clusters": machine}


def _models(found: list[Architecture]) -> Table:
    rows = []
    for value in found:
        moe = value.moe
        experts = f"top-{moe.topk} of {moe.experts}" if moe else "-"
        count = f"{parameter_count(value):,}"
        rows.append(
            (value.name, count, f"{value.num_layers}", f"{value.hidden:,}", experts)
        )
    columns = (
        Column("model", "left"),
        Column("parameters"),
        Column("layers"),
        Column("hidden"),
        Column("experts", "left"),
    )
    return Table(columns, tuple(rows))


def _devices(found: list[Device]) -> Table:
    rows = [
        (
            value.name,
            value.vendor,
            f"{value.hbm_bytes / GIB:.2f}",
            _teraflops(value),
            f"{value.hbm_bandwidth / 1e12:.2f}",
        )
        for value in found
    ]
    columns = (
        Column("device", "left"),
        Column("vendor", "left"),
        Column("GiB"),
        Column("bf16 TFLOP/s"),
        Column("TB/s"),
    )
    return Table(columns, tuple(rows))


def _teraflops(value: Device) -> str:
    peak = value.peak_flops.get("bf16")
    return "-" if peak is None else f"{peak / 1e12:,.0f}"


def _clusters(found: list[Cluster]) -> Table:
    rows = [
        (c.name, f"{c.nodes:,}", f"{c.gpus_per_node:,}", c.device.name) for c in found
    ]
    columns = (
        Column("cluster", "left"),
        Column("nodes"),
        Column("GPUs a node"),
        Column("device", "left"),
    )
    return Table(columns, tuple(rows))


def _fabrics(found: list[Fabric]) -> Table:
    rows = [
        (
            f.name,
            f"{f.scale_up_size:,}",
            f.topology,
            f"{f.scale_up_bandwidth / 1e9:,.0f}",
            f"{f.nic_bandwidth / 1e9:,.1f}",
        )
        for f in found
    ]
    columns = (
        Column("fabric", "left"),
        Column("devices a domain"),
        Column("topology", "left"),
        Column("GB/s a device inside"),
        Column("GB/s a device outside"),
    )
    return Table(columns, tuple(rows))


#: What a kind's list shows, in the order of the kinds.
_TABLES: dict[Kind, Callable[[list[Any]], Table]] = {
    "models": _models,
    "devices": _devices,
    "fabrics": _fabrics,
    "clusters": _clusters,
}
