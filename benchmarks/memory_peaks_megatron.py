"""Rows of Megatron runs other than its CI: SimuMax's and Megatron-Bridge's.

The table's columns become Megatron's arguments; what it says in words is read by the
rules named here.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ..models.architecture import LatentAttention
from ..models.dialects.megatron_args import Arguments
from ..models.dialects.megatron_args_run import read_run
from ..models.layout import RECOMPUTE_MODULES
from .memory_peaks_mcore import COLUMNS, EXPERTS, flags_of
from .truth.architecture import architecture_of

if TYPE_CHECKING:
    from ..models.architecture import Architecture
    from ..models.dialects.megatron_args import Value
    from ..models.memory.phases import Run
    from .truth.row import Row

#: How the models of these rows are written, where no column says it.
_MODERN: dict[str, Value] = {
    "normalization": "RMSNorm",
    "position-embedding-type": "rope",
    "disable-bias-linear": True,
    "attention-dropout": "0.0",
    "hidden-dropout": "0.0",
    "no-create-attention-mask-in-dataloader": True,
    "qk-layernorm": True,
}
_CAPACITY = re.compile(r"capacity factor (?P<factor>\d+(?:\.\d+)?)")
_QUERY_RANK = re.compile(r"q_lora\w*\W{0,4}\d")
_BLOCK = re.compile(r"block\D{0,12}(?P<n>\d+) layers?")


def arguments_of(row: Row) -> Arguments:
    """Return the arguments of a run."""
    found: dict[str, Value] = dict(_MODERN)
    for column, name in COLUMNS.items():
        if column != "flash_attn" and row.text(column) not in ("", "0"):
            found[name] = row.text(column)
    found["micro-batch-size"] = row.text("micro_batch") or "1"
    # Unless a row says so, it is the length of these cards' recipes.
    found.setdefault("seq-length", "4096")
    found.update(flags_of(row))
    found.update(_experts(row) if row.text("experts") else {})
    found.update(_options(row))
    return Arguments(found)


def _experts(row: Row) -> dict[str, Value]:
    found: dict[str, Value] = {
        EXPERTS["moe_ffn"]: row.text("moe_ffn") or row.text("ffn"),
        "moe-token-dispatcher-type": "alltoall",
        "moe-grouped-gemm": True,
    }
    if "deepep" in row.words("extras"):
        found["moe-token-dispatcher-type"] = "flex"
    if not row.text("etp"):
        found["expert-tensor-parallel-size"] = "1"
    return found


def _options(row: Row) -> dict[str, Value]:
    words = row.words("extras", "recompute")
    found: dict[str, Value] = {}
    if "bridge" in row.words("framework"):
        # Its recipes shard the optimizer, also where a card says "none", and reduce
        # gradients in 16 bits.
        found["use-distributed-optimizer"] = True
        found["grad-reduce-in-bf16"] = True
    if "te fused cross-entropy" in words:
        found |= {"cross-entropy-loss-fusion": True, "cross-entropy-fusion-impl": "te"}
    if "fp8" in row.words("precision"):
        found["fp8-format"] = "hybrid"
        found["fp8-recipe"] = _recipe(row.words("precision"))
    if factor := _CAPACITY.search(words):
        found["moe-expert-capacity-factor"] = factor["factor"]
    if "cp_comm_type=a2a" in words:
        found["cp-comm-type"] = "a2a"
    choice = row.text("recompute").partition(":")[2]
    modules = [n for n in RECOMPUTE_MODULES if n in re.split(r"[^a-z_]+", choice)]
    if row.text("recompute").startswith("full"):
        found["recompute-granularity"] = "full"
        if blocks := _BLOCK.search(row.text("recompute")):
            found["recompute-method"] = "block"
            found["recompute-num-layers"] = blocks["n"]
    elif modules:
        found["recompute-granularity"] = "selective"
        found["recompute-modules"] = tuple(modules)
    return found


def _recipe(text: str) -> str:
    """Return the FP8 recipe that a row names, per-tensor scaling if it names none."""
    names = {"mx": "mxfp8", "block": "blockwise", "delayed": "delayed"}
    return next((name for word, name in names.items() if word in text), "tensorwise")


def model_of(row: Row) -> Architecture:
    """Return the model; latent attention compresses queries only if a rank is stated.

    Raises
    ------
    Unstated
        If the row does not say what its model is.
    """
    model = architecture_of(row)[0]
    if _QUERY_RANK.search(row.text("arch_notes")):
        return model
    layers = tuple(
        replace(layer, attention=replace(layer.attention, q_rank=None))
        if isinstance(layer.attention, LatentAttention)
        else layer
        for layer in model.layers
    )
    return replace(model, layers=layers)


def run_of(row: Row, generation: str) -> Run:
    """Return the run of a row.

    Raises
    ------
    InputError
        If the row lacks a size.
    """
    args = arguments_of(row)
    world = row.whole("num_gpus") or 8
    return read_run(args, world, generation, architecture=model_of(row))
