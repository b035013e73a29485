"""``shardproof catalogue``: what is known by name, with its sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...models.catalogue import (
    architecture,
    cluster,
    device,
    fabric,
    names,
    to_yaml,
)
from ...models.errors import unknown_name
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
    from ...models.cluster import Cluster, Device

_READERS: dict[Kind, Callable[[str], Any]] = {
    "models": architecture,
    "devices": device,
    "clusters": cluster,
    "fabrics": fabric,
}


def run(name: str | None, *, as_json: bool) -> int:
    """List everything or show one entry, print, and return the exit code."""
    if name is not None:
        return _show(name, as_json=as_json)
    models = [architecture(n) for n in names("models")]
    devices = [device(n) for n in names("devices")]
    clusters = [cluster(n) for n in names("clusters")]
    finish(
        {
            "schema": CATALOGUE,
            "models": [_model(m) for m in models],
            "devices": [plain(d) for d in devices],
            "clusters": [machine(c) for c in clusters],
        },
        title=f"{len(models)} models, {len(devices)} devices, {len(clusters)} clusters",
        tables=[_models(models), _devices(devices), _clusters(clusters)],
        text="shardproof catalogue NAME shows an entry whole, with its sources.",
        as_json=as_json,
    )
    return OK


def _show(name: str, *, as_json: bool) -> int:
    kinds = [k for k in _READERS if name.strip().lower() in names(k)]
    if not kinds:
        known = [n for k in _READERS for n in names(k)]
        raise unknown_name("entry", name, known)
    document: Document = {"schema": CATALOGUE}
    texts = []
    for kind in kinds:
        entry = _READERS[kind](name)
        texts.append(to_yaml(entry).rstrip())
        document[kind] = [_FORMS.get(kind, plain)(entry)]
    finish(
        document,
        title=f"{name}: {' and '.join(k.removesuffix('s') for k in kinds)}",
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
