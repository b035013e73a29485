"""Tables of matrix products and of experts' grouped products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..rows import Rows
from .machines import WIDTHS, machine_of
from .rules import Drops, check_units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .columns import Columns

#: Formats of training by the tables' names; weight-only formats are for inference.
FORMATS = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8-block",
    "nvfp4": "nvfp4",
}
#: A kernel below this many FLOPs says little about the unit of times.
_LARGE = 1e9


def sound(
    table: Columns, seconds: Any, sizes: dict[str, Any], drops: Drops
) -> NDArray[np.bool_]:
    """Return the rows with possible sizes and times on the file's own device."""
    alive = np.ones(len(table), dtype=bool)
    for values in sizes.values():
        alive = drops.keep(np.nan_to_num(values) >= 1, "size", alive)
    alive = drops.keep(np.isfinite(seconds) & (seconds > 0), "time", alive)
    return np.asarray(drops.keep(_of_device(table), "device", alive))


def _of_device(table: Columns) -> NDArray[np.bool_]:
    from .machines import device_named

    names = table.words("device")
    known = {name: device_named(name) == table.device for name in np.unique(names)}
    return np.array([known[name] for name in names])


def formats(table: Columns, column: str) -> Any:
    """Return each row's number format, empty where it is none of training."""
    known = {name: FORMATS.get(name, "") for name in np.unique(table.words(column))}
    return np.array([known[name] for name in table.words(column)])


def gemm_rows(table: Columns, source: dict[str, Any], drops: Drops) -> list[Rows]:
    """Read a table of matrix products: columns m, n, k, gemm_dtype, latency in ms."""
    sizes = {name: table.numbers(name) for name in ("m", "n", "k")}
    seconds = table.numbers("latency") * 1e-3
    alive = sound(table, seconds, sizes, drops)
    precision = formats(table, "gemm_dtype")
    alive = drops.keep(precision != "", "dtype", alive)
    found = []
    for name in sorted(set(precision[alive])):
        mine = alive & (precision == name)
        machine = machine_of(table.device, name)
        flops = 2 * sizes["m"] * sizes["n"] * sizes["k"]
        moved = (sizes["m"] + sizes["n"]) * sizes["k"] * WIDTHS[name]
        ideal = np.maximum(flops / machine.flops, moved / machine.bandwidth)
        check_units(seconds[mine], ideal[mine], flops[mine] >= _LARGE, table.where)
        # Operands may lie in the cache, so only FLOPs can be impossible.
        mine = drops.keep(
            (flops / machine.flops < 1.1 * seconds) | ~mine, "impossible", mine
        )
        found.append(_rows(f"gemm.{name}", table, sizes, seconds, source).at(mine))
    return found


def grouped_rows(table: Columns, source: dict[str, Any], drops: Drops) -> list[Rows]:
    """Read a table of experts' networks: balanced routing, the commonest kernel."""
    sizes = {
        "tokens": table.numbers("num_tokens"),
        "topk": table.numbers("topk"),
        "experts": table.numbers("num_experts"),
        "ep": table.numbers("moe_ep_size"),
        "hidden": table.numbers("hidden_size"),
        "inter": table.numbers("inter_size") / table.numbers("moe_tp_size"),
    }
    seconds = table.numbers("latency") * 1e-3
    alive = sound(table, seconds, sizes, drops)
    precision = formats(table, "moe_dtype")
    alive = drops.keep(precision != "", "dtype", alive)
    alive = drops.keep(table.words("distribution") == "balanced", "routing", alive)
    kernels = table.words("kernel_source")
    found = []
    for name in sorted(set(precision[alive])):
        mine = alive & (precision == name)
        names, counts = np.unique(kernels[mine], return_counts=True)
        mine = drops.keep((kernels == names[counts.argmax()]) | ~mine, "kernel", mine)
        machine = machine_of(table.device, name)
        rows = sizes["tokens"] * sizes["topk"] / sizes["ep"]
        flops = 6 * rows * sizes["hidden"] * sizes["inter"]
        check_units(
            seconds[mine],
            (flops / machine.flops)[mine],
            flops[mine] >= 1e12,
            table.where,
        )
        found.append(_rows(f"grouped.{name}", table, sizes, seconds, source).at(mine))
    return found


def _rows(
    kernel: str,
    table: Columns,
    sizes: dict[str, Any],
    seconds: Any,
    source: dict[str, Any],
) -> Rows:
    return Rows(
        kernel=kernel, device=table.device, sizes=sizes, seconds=seconds, source=source
    )
