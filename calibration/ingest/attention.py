"""Tables of fused attention: causal forward over prompts, latent attention too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..rows import Rows
from .machines import machine_of
from .products import formats, sound
from .rules import Drops, check_units

if TYPE_CHECKING:
    from .columns import Columns

#: Generation of the kernel by the tables' names of it.
GENERATIONS = {
    "flash_attention": "fa2",
    "fa3": "fa3",
    "triton": "triton",
    "flashinfer": "flashinfer",
    "trtllm_mha": "trtllm-mha",
    "torch_flow": "trtllm",
    "torch_flow_flashinfer": "trtllm-flashinfer",
}
#: Head widths of DeepSeek's latent attention: queries and keys, values.
_LATENT = (192.0, 128.0)


def attention_rows(table: Columns, source: dict[str, Any], drops: Drops) -> list[Rows]:
    """Read a table of causal attention; one kernel for each generation and width."""
    heads = table.numbers("num_heads")
    sizes = {
        "batch": table.numbers("batch_size"),
        "seq": table.numbers("isl"),
        "heads": heads,
        "group": heads / np.maximum(table.numbers("num_key_value_heads"), 1e-9),
        "query_dim": table.numbers("head_dim"),
    }
    sizes["value_dim"] = sizes["query_dim"]
    seconds = table.numbers("latency") * 1e-3
    alive = sound(table, seconds, sizes, drops)
    precision = formats(table, "attn_dtype")
    alive = drops.keep(precision != "", "dtype", alive)
    same = precision == formats(table, "kv_cache_dtype")
    alive = drops.keep(same, "mixed", alive)
    if table.has("window_size"):
        alive = drops.keep(table.numbers("window_size") == 0, "window", alive)
    kernels = table.words("kernel_source")
    known = {k: GENERATIONS.get(k, k.replace("_", "-")) for k in np.unique(kernels)}
    generation = np.array([known[k] for k in kernels])
    names = np.array(
        [
            f"attention.{g}.{p}.d{d:.0f}"
            for g, p, d in zip(generation, precision, sizes["query_dim"], strict=True)
        ]
    )
    found = []
    for name in sorted(map(str, set(names[alive]))):
        mine = alive & (names == name)
        found.append(_checked(name, table, sizes, seconds, source).at(mine))
    return found


def latent_rows(table: Columns, source: dict[str, Any], drops: Drops) -> list[Rows]:
    """Read a table of DeepSeek's latent attention over prompts."""
    ones = np.ones(len(table))
    sizes = {
        "batch": table.numbers("batch_size"),
        "seq": table.numbers("isl"),
        "heads": table.numbers("num_heads"),
        "group": ones,
        "query_dim": ones * _LATENT[0],
        "value_dim": ones * _LATENT[1],
    }
    seconds = table.numbers("latency") * 1e-3
    alive = sound(table, seconds, sizes, drops)
    precision = formats(table, "mla_dtype")
    alive = drops.keep(precision != "", "dtype", alive)
    alive = drops.keep(precision == formats(table, "kv_cache_dtype"), "mixed", alive)
    found = []
    for name in sorted(set(precision[alive])):
        mine = alive & (precision == name)
        rows = _checked(f"attention.mla.{name}.d192", table, sizes, seconds, source)
        found.append(rows.at(mine))
    return found


def _checked(
    kernel: str,
    table: Columns,
    sizes: dict[str, Any],
    seconds: Any,
    source: dict[str, Any],
) -> Rows:
    machine = machine_of(table.device, kernel.split(".")[2])
    pairs = sizes["batch"] * sizes["heads"] * sizes["seq"] ** 2 / 2
    flops = 2 * pairs * (sizes["query_dim"] + sizes["value_dim"])
    check_units(seconds, flops / machine.flops, flops >= 1e11, table.where)
    return Rows(
        kernel=kernel,
        device=table.device,
        sizes={**sizes, "products": np.ones(len(table))},
        seconds=seconds,
        source=source,
    )
