"""Rows of Megatron runs other than its CI: SimuMax's and Megatron-Bridge's.

The table's columns become Megatron's arguments; what it says in words is read by the
rules named here.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ..models.dialects.megatron_args import Arguments
from ..models.dialects.megatron_args_run import read_run
from ..models.layout import RECOMPUTE_MODULES
from .memory_peaks_mcore import COLUMNS, EXPERTS, flags_of

if TYPE_CHECKING:
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
}
_LATENT = re.compile(
    r"MLA q_lora(?P<q>\d+) kv_lora(?P<kv>\d+) qk(?:_nope)?(?P<nope>\d+)"
    r"(?:\+| qk_rope)(?P<rope>\d+) v(?P<v>\d+)"
)
_FIRST_DENSE = re.compile(r"first (?P<n>\d+) layers? dense")
_BLOCK = re.compile(r"block\D{0,12}(?P<n>\d+) layers?")
_HEAD = re.compile(r"head_dim\D{0,4}(?P<d>\d+)")


def notes_of(row: Row) -> str:
    """Return what the table says of the architecture in words."""
    text = row.text("arch_notes")
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except ValueError:
            return text
        return " ".join(f"{k} {v}" for k, v in found.items())
    return text


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
    # Recipes of Megatron-Bridge shard the optimizer, also where a card says "none".
    found["use-distributed-optimizer"] = True
    found.update(_experts(row) if row.text("experts") else {})
    found.update(_latent(row))
    found.update(_options(row))
    return Arguments(found)


def _latent(row: Row) -> dict[str, Value]:
    notes = notes_of(row)
    found: dict[str, Value] = {}
    if match := _HEAD.search(notes):
        found["kv-channels"] = match["d"]
    if match := _LATENT.search(notes):
        found |= {
            "multi-latent-attention": True,
            "qk-layernorm": True,
            "q-lora-rank": match["q"],
            "kv-lora-rank": match["kv"],
            "qk-head-dim": match["nope"],
            "qk-pos-emb-head-dim": match["rope"],
            "v-head-dim": match["v"],
        }
    elif "qwen3" in row.text("model"):
        found["qk-layernorm"] = True
    return found


def _experts(row: Row) -> dict[str, Value]:
    """Read experts; ``shared_experts`` counts them, each of the experts' width."""
    found: dict[str, Value] = {
        EXPERTS["moe_ffn"]: row.text("moe_ffn"),
        "moe-token-dispatcher-type": "alltoall",
        "moe-grouped-gemm": True,
    }
    if not row.text("etp"):
        found["expert-tensor-parallel-size"] = "1"
    if shared := row.whole("shared_experts"):
        width = shared * (row.whole("moe_ffn") or 0)
        found[EXPERTS["shared_experts"]] = str(width)
    if match := _FIRST_DENSE.search(notes_of(row)):
        layers, dense = row.whole("layers") or 0, int(match["n"])
        found["moe-layer-freq"] = f"([0]*{dense}+[1]*{layers - dense})"
    return found


def _options(row: Row) -> dict[str, Value]:
    words = row.words("extras", "recompute")
    found: dict[str, Value] = {}
    if "bridge" in row.words("framework"):
        # Its performance recipes reduce gradients in 16 bits.
        found["grad-reduce-in-bf16"] = True
    if "te fused cross-entropy" in words:
        found |= {"cross-entropy-loss-fusion": True, "cross-entropy-fusion-impl": "te"}
    if "fp8" in row.words("precision"):
        found["fp8-format"] = "hybrid"
        found["fp8-recipe"] = _recipe(row.words("precision"))
    if "capacity factor 1" in words:
        found["moe-expert-capacity-factor"] = "1"
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


def run_of(row: Row, generation: str) -> Run:
    """Return the run of a row.

    Raises
    ------
    InputError
        If the row lacks a size.
    """
    args = arguments_of(row)
    return read_run(args, row.whole("num_gpus") or 8, generation)
