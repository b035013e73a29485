"""The file of a layer: JSON, every factor beside its source.

``{"format": "shardproof-layer@1", "layer": "device", "name": ..., "version": 1,
"calibrated": false, "factors": {"gemm.bf16.ceiling": {"value": 0.75, "source": ...}},
"domain": {"gemm.bf16": {"m": [1, 32768]}}, "bands": {"gemm.bf16": 0.08},
"provenance": [{"source": ..., "version": ..., "licence": ..., "rows": ...}],
"tables": {...}, "left_out": {...}}``
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import InputError
from .layer import Layer

FORMAT = "shardproof-layer@1"

_KNOWN = {
    "format",
    "layer",
    "name",
    "version",
    "calibrated",
    "factors",
    "domain",
    "bands",
    "provenance",
    "tables",
    "left_out",
}


def read_layer(path: str | Path) -> Layer:
    """Read a layer from a file of yours.

    Raises
    ------
    InputError
        If the file cannot be read, is not JSON or breaks the format.
    """
    try:
        document = json.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"cannot read the layer {path}: {error}") from error
    return layer_of(document, str(path))


def layer_of(document: Any, where: str) -> Layer:
    """Check a parsed document and return its layer; ``where`` names it in errors."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(
            f"a layer's file is a JSON object with format {FORMAT!r}, got something "
            f"else in {where}"
        )
    if strange := sorted(set(document) - _KNOWN):
        raise InputError(
            f"a layer's file has no {strange[0]!r} ({where}); it has "
            f"{', '.join(sorted(_KNOWN))}"
        )
    try:
        factors = {k: float(v["value"]) for k, v in document["factors"].items()}
        sources = {k: str(v["source"]) for k, v in document["factors"].items()}
        domain = {
            kernel: {size: (float(a), float(b)) for size, (a, b) in sizes.items()}
            for kernel, sizes in document.get("domain", {}).items()
        }
        return Layer(
            kind=document["layer"],
            name=str(document["name"]),
            version=int(document.get("version", 1)),
            calibrated=document.get("calibrated") is True,
            factors=factors,
            sources=sources,
            domain=domain,
            bands={k: float(v) for k, v in document.get("bands", {}).items()},
            provenance=tuple(document.get("provenance", ())),
            tables=document.get("tables", {}),
            left_out=document.get("left_out", {}),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"the layer {where} lacks a field or has one of the wrong kind: {error!r}; "
            "see docs/profiles.md for the format"
        ) from error


def document_of(layer: Layer) -> dict[str, Any]:
    """Return the layer as its file has it, keys in a fixed order."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "layer": layer.kind,
        "name": layer.name,
        "version": layer.version,
        "calibrated": layer.calibrated,
        "factors": {
            name: {"value": value, "source": layer.sources[name]}
            for name, value in layer.factors.items()
        },
    }
    for name in ("domain", "bands", "provenance", "tables", "left_out"):
        if value := getattr(layer, name):
            document[name] = _plain(value)
    return document


def _plain(value: Any) -> Any:
    if hasattr(value, "items"):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return value


def text_of(layer: Layer) -> str:
    """Return the text of a layer's file; the same layer gives the same bytes.

    Each factor, kernel and source has a line of its own.
    """
    lines = []
    for name, value in document_of(layer).items():
        if not isinstance(value, dict | list):
            lines.append(f" {json.dumps(name)}: {_one_line(value)}")
            continue
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        entries = value.items() if isinstance(value, dict) else [("", v) for v in value]
        inside = ",\n".join(
            f"  {json.dumps(key) + ': ' if key else ''}{_one_line(entry)}"
            for key, entry in entries
        )
        lines.append(f" {json.dumps(name)}: {opening}\n{inside}\n {closing}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _one_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
