"""SimuMax's system files: training kernels as efficiencies by shape.

A key names the shape, the value is the fraction of the file's own peak. Attention's
fractions count all pairs of queries and keys, though the kernels are causal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.errors import InputError
from ..rows import Rows
from .machines import device_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from .rules import Drops

#: Pass of a product by its layout: which operand is transposed.
_LAYOUTS = {"TN": "forward", "NN": "dgrad", "NT": "wgrad"}
_STAGES = {"fwd": "forward", "bwd_grad_act": "dgrad", "bwd_grad_w": "wgrad"}
_BYTES = {"bf16": 2.0, "fp32": 4.0}
_SOURCE = {
    "source": "MooreThreads/SimuMax",
    "version": "commit 4dcaae5",
    "licence": "Apache-2.0",
}

_Entry = tuple[str, dict[str, float], float]


def read_simumax(document: dict[str, Any], where: str, drops: Drops) -> list[Rows]:
    """Read the matrix products, grouped products and attention of a system file.

    Raises
    ------
    InputError
        If a key is not of the known form, or the file lacks a field.
    """
    try:
        device = device_named(document["sys_name"])
        operations = document["accelerator"]["op"]
        entries = [
            (*reader(_shape(key)), float(value) * operations[kind]["tflops"] * 1e12)
            for kind, reader in _READERS.items()
            for key, value in operations.get(kind, {})
            .get("accurate_efficient_factor", {})
            .items()
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{where} is no SimuMax system file as of commit 4dcaae5: {error!r}"
        ) from error
    found = []
    for kernel in sorted({entry[0] for entry in entries}):
        mine = [entry for entry in entries if entry[0] == kernel]
        rate = np.array([entry[3] for entry in mine])
        good = np.isfinite(rate) & (rate > 0)
        drops.add("time", int((~good).sum()))
        flops = np.array([entry[2] for entry in mine])
        sizes = {
            name: np.array([entry[1][name] for entry in mine]) for name in mine[0][1]
        }
        rows = Rows(
            kernel=kernel,
            device=device,
            sizes=sizes,
            seconds=flops / np.where(good, rate, 1.0),
            source={**_SOURCE, "table": where},
        )
        found.append(rows.at(good))
    return found


def _shape(key: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in key.split(", ") if part)


def _product(shape: dict[str, str]) -> _Entry:
    m, n, k = (float(shape[name]) for name in "mnk")
    kernel = f"train.gemm.{_LAYOUTS[shape['layout']]}"
    return kernel, {"m": m, "n": n, "k": k}, 2 * m * n * k * float(shape["b"])


def _grouped(shape: dict[str, str]) -> _Entry:
    m, n, k, groups = (float(shape[name]) for name in ("M", "N", "K", "ng"))
    stage = _STAGES[shape["stage"]]
    out = shape["main_grad_dtype"] if stage == "wgrad" else shape["out_dtype"]
    sizes = {"groups": groups, "m": m, "n": n, "k": k, "bytes": _BYTES[out]}
    return f"train.grouped.{stage}", sizes, 2 * groups * m * n * k


def _attention(products: float, name: str) -> Callable[[dict[str, str]], _Entry]:
    def read(shape: dict[str, str]) -> _Entry:
        heads = float(shape["head_num"])
        sizes = {
            "batch": float(shape["batch"]),
            "seq": float(shape["seq_len"]),
            "heads": heads,
            "group": heads / float(shape["kv_head_num"]),
            "query_dim": float(shape["qk_head_dim"]),
            "value_dim": float(shape["v_head_dim"]),
            "products": products,
        }
        pairs = sizes["batch"] * heads * sizes["seq"] ** 2
        wide = sizes["query_dim"] + sizes["value_dim"]
        return f"train.attention.{name}", sizes, 2 * pairs * wide * products

    return read


_READERS = {
    "matmul": _product,
    "group_matmul": _grouped,
    "sdp_fwd": _attention(1.0, "forward"),
    "sdp_bwd": _attention(2.5, "backward"),
}
