"""Layers of profiles from measurements: one device and one cluster layer a device.

A layer starts from the priors of its generation. Kernels come beside them as tables.
Where two libraries time the same kernel, the one whose left-out error is smaller is
kept; of two tables of a collective the one that spans more sizes. Everything is
repeatable: the same files give the same bytes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.profiles import load_layer
from ...models.profiles.layer import Layer
from ...models.profiles.surfaces import kernel_of
from ..ingest.machines import link_of, machine_of
from .factors import fitted_factors
from .judged import Judged, document_of, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...models.profiles.layer import Kind
    from ...models.profiles.surfaces.law import Machine
    from ..ingest import Imported
    from ..rows import Rows

#: Prior layers by device: those of its generation.
_PRIORS = {"a100": "ampere", "h": "hopper", "b": "blackwell", "gb": "blackwell"}
#: Kernels of attention that a profile carries: training's head widths and formats.
_ATTENTION = re.compile(
    r"attention\.((fa2|fa3|trtllm|trtllm-mha|mla)\.bf16\.d(64|128|192|256)"
    r"|(fa3|trtllm)\.fp8\.d128)"
)


def carried(kernel: str) -> bool:
    """Say whether a profile carries a kernel."""
    if kernel.startswith("attention."):
        return _ATTENTION.fullmatch(kernel) is not None
    return True


def kind_of(kernel: str) -> Kind:
    """Return the layer that holds a kernel."""
    return "cluster" if kernel.startswith(("collective.", "exchange.")) else "device"


def machine_for(rows: Rows) -> Machine:
    """Return the peaks that a kernel's fractions are of."""
    if kind_of(rows.kernel) == "cluster":
        return link_of(rows.device)
    words = rows.kernel.split(".")
    if words[0] == "train":
        return machine_of(rows.device, "bf16")
    return machine_of(rows.device, words[2 if words[0] == "attention" else 1])


def fit_layers(
    imported: Iterable[Imported], report: Callable[[str], None] = lambda _: None
) -> list[Layer]:
    """Fit the layers of every device that the measurements name.

    Parameters
    ----------
    imported
        What the readers found.
    report
        Called with a line for each kernel.
    """
    found: dict[tuple[str, Kind], dict[str, list[Rows]]] = {}
    for part in imported:
        for rows in part.rows:
            if carried(rows.kernel):
                key = rows.device, kind_of(rows.kernel)
                found.setdefault(key, {}).setdefault(rows.kernel, []).append(rows)
    return [
        _layer(device, kind, kernels, report)
        for (device, kind), kernels in sorted(found.items())
    ]


def _layer(
    device: str,
    kind: Kind,
    kernels: dict[str, list[Rows]],
    report: Callable[[str], None],
) -> Layer:
    tables: dict[str, Any] = {}
    left_out: dict[str, Any] = {}
    used: list[Rows] = []
    for name in sorted(kernels):
        rows, document, errors = _best(_joined(kernels[name]))
        tables[name], left_out[name] = document, errors
        used.append(rows)
        report(f"{device} {name}: {_line(errors)}")
    prior = load_layer(kind, f"{prior_of(device)}-prior")
    known = {name: kernel_of(document) for name, document in tables.items()}
    factors, sources = fitted_factors(prior, known)
    return Layer(
        kind=kind,
        name=short(device),
        calibrated=True,
        factors=factors,
        sources=sources,
        domain={name: dict(kernel.domain) for name, kernel in known.items()},
        bands={name: _band(document) for name, document in tables.items()},
        provenance=tuple(_provenance(used)),
        tables=tables,
        left_out=left_out,
    )


def _joined(parts: Sequence[Rows]) -> list[Rows]:
    """Join rows of one source: files that differ in the number of ranks only."""
    found: dict[tuple[str, str], list[Rows]] = {}
    for rows in parts:
        table = re.sub(r"_gpu\d+", "", str(rows.source["table"]))
        found.setdefault((str(rows.source["source"]), table), []).append(rows)
    return [_concatenated(same, table) for (_, table), same in sorted(found.items())]


def _concatenated(parts: list[Rows], table: str) -> Rows:
    if len(parts) == 1:
        return parts[0]
    sizes = {
        name: np.concatenate([rows.sizes[name] for rows in parts])
        for name in parts[0].sizes
    }
    return replace(
        parts[0],
        sizes=sizes,
        seconds=np.concatenate([rows.seconds for rows in parts]),
        source={**parts[0].source, "table": table},
    )


def _best(parts: list[Rows]) -> tuple[Rows, dict[str, Any], dict[str, Any]]:
    """Judge the same kernel of several sources and keep the best predicted one."""
    judged = [(rows, judge(rows, machine_for(rows))) for rows in parts]
    rows, best = min(
        judged, key=lambda pair: (-_octaves(pair[0]), _chosen_error(pair[1]))
    )
    errors = {**best.left_out, "source": rows.source["table"]}
    others = {
        str(r.source["table"]): {
            key: j.left_out[key] for key in ("random", "region") if key in j.left_out
        }
        for r, j in judged
        if r is not rows
    }
    if others:
        errors["others"] = others
    return rows, document_of(best.kernel), errors


def _octaves(rows: Rows) -> int:
    """Return how many octaves of sizes a table of collectives spans, else 0."""
    if not rows.kernel.startswith("collective."):
        return 0
    sizes = rows.sizes["bytes"]
    return round(float(np.log2(sizes.max() / sizes.min())))


def _chosen_error(judged: Judged) -> float:
    return min(float(error) for error in judged.left_out["forms"].values())


def _line(errors: dict[str, Any]) -> str:
    sizes = ", ".join(
        f"{name} {value['median']:.2f} / {value['p90']:.2f} %"
        for name, value in errors["random"].items()
    )
    return f"{errors['form']}, left out at random: {sizes}"


def _band(document: dict[str, Any]) -> float:
    band = kernel_of(document).band
    assert band is not None
    return round(float(np.expm1(np.median(band.values))), 4)


def _provenance(used: list[Rows]) -> list[dict[str, Any]]:
    found: dict[tuple[str, ...], int] = {}
    for rows in used:
        key = tuple(
            str(rows.source[name]) for name in ("source", "version", "licence", "table")
        )
        found[key] = found.get(key, 0) + len(rows)
    return [
        {"source": s, "version": v, "licence": c, "table": t, "rows": count}
        for (s, v, c, t), count in sorted(found.items())
    ]


def prior_of(device: str) -> str:
    """Return the generation whose priors a device starts from."""
    name = device.rstrip("0123456789-")
    return _PRIORS["a100" if device.startswith(("a100", "v100")) else name]


def short(device: str) -> str:
    """Return a layer's name: the device's without its memory size."""
    return device.split("-")[0]
