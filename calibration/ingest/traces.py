"""Chrome and Kineto traces: device kernels with the shapes of the call above them.

A kernel event carries an ``External id`` that the framework's event shares, and that
event's ``Input Dims`` (recorded with ``record_shapes=True``) give the sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.errors import InputError
from ..rows import Rows
from .links import COLLECTIVES, rounds_of
from .machines import device_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .rules import Drops

_PRODUCTS = {"aten::mm", "aten::addmm", "aten::linear", "aten::matmul", "aten::bmm"}
_TYPES = {"c10::BFloat16": "bf16", "c10::Half": "bf16", "BFloat16": "bf16"}
_WIDTH = {"BFloat16": 2.0, "Half": 2.0, "Float": 4.0}

_Sample = tuple[str, tuple[tuple[str, float], ...], float]


def read_trace(document: Any, where: str, device: str, drops: Drops) -> list[Rows]:
    """Read the matrix products and collectives of a trace; others are dropped.

    Raises
    ------
    InputError
        If the document is no trace or names no device.
    """
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise InputError(
            f"{where} is neither a SimuMax system file nor a trace with traceEvents"
        )
    known = device or _device(document, where)
    samples = list(_samples([e for e in events if isinstance(e, dict)], drops))
    found = []
    for kernel in sorted({sample[0] for sample in samples}):
        mine = [sample for sample in samples if sample[0] == kernel]
        sizes = [dict(sample[1]) for sample in mine]
        found.append(
            Rows(
                kernel=kernel,
                device=known,
                sizes={
                    name: np.array([size[name] for size in sizes]) for name in sizes[0]
                },
                seconds=np.array([sample[2] for sample in mine]),
                source={"source": "user", "version": "", "licence": "", "table": where},
            )
        )
    return found


def _samples(events: list[dict[str, Any]], drops: Drops) -> Iterator[_Sample]:
    calls = {
        event["args"]["External id"]: event
        for event in events
        if event.get("cat") == "cpu_op" and "External id" in event.get("args", {})
    }
    for event in events:
        if event.get("cat") != "kernel":
            continue
        seconds = float(event.get("dur", 0)) * 1e-6
        if seconds <= 0:
            drops.add("time", 1)
            continue
        args = event.get("args", {})
        if "Collective name" in args:
            sample = _collective(args)
        else:
            call = calls.get(args.get("External id"))
            if call is None or call.get("name") not in _PRODUCTS:
                drops.add("kind", 1)
                continue
            sample = _product(call)
        if sample is None:
            drops.add("shape", 1)
            continue
        yield (*sample, seconds)


def _product(call: dict[str, Any]) -> tuple[str, tuple[tuple[str, float], ...]] | None:
    args = call.get("args", {})
    dims = [d for d in args.get("Input Dims", []) if len(d) >= 2]
    types = [_TYPES.get(t) for t in args.get("Input type", []) if t in _TYPES]
    if len(dims) < 2 or not types:
        return None
    first, second = dims[-2:]
    rows = float(np.prod(first[:-1]))
    inner = float(first[-1])
    transposed = call["name"] == "aten::linear"
    columns = float(second[0] if transposed else second[-1])
    return f"gemm.{types[0]}", (("m", rows), ("n", columns), ("k", inner))


def _collective(
    args: dict[str, Any],
) -> tuple[str, tuple[tuple[str, float], ...]] | None:
    words = str(args["Collective name"]).lower().lstrip("_").removesuffix("_base")
    name = COLLECTIVES.get(words.replace("allgather_into_tensor", "allgather"), "")
    width = _WIDTH.get(str(args.get("dtype")), 0.0)
    ranks = float(args.get("Group size", 0))
    if not name or not width or ranks < 2:
        return None
    # Of the two buffers the larger one is the whole.
    count = max(float(args.get(f"{end} msg nelems", 0)) for end in ("In", "Out"))
    if count < 1:
        return None
    sizes = (("bytes", count * width), ("ranks", ranks), ("rounds", rounds_of(name)))
    return f"collective.{name}", sizes


def _device(document: Any, where: str) -> str:
    properties = (
        document.get("deviceProperties") if isinstance(document, dict) else None
    )
    if not properties:
        raise InputError(f"{where} names no device; give one with --device")
    return device_named(str(properties[0].get("name", "")))
