"""Rows of Megatron's CI: arguments of a test, and the peak of its last rank.

The table has the main arguments as columns and the rest as JSON. What a row lacks is
inferred by the rules named here, none of which looks at a measurement.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..models.dialects.megatron_args import Arguments
from ..models.dialects.megatron_args_run import attention_of, read_run
from ..models.memory.library import UNFUSED
from .memory_peaks_rules import arguments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..models.dialects.megatron_args import Value
    from ..models.memory.library import Backend
    from ..models.memory.phases import Run
    from .truth.row import Row

#: Argument of each column.
COLUMNS = {
    "layers": "num-layers",
    "hidden": "hidden-size",
    "ffn": "ffn-hidden-size",
    "heads": "num-attention-heads",
    "kv_heads": "num-query-groups",
    "seq_len": "seq-length",
    "vocab": "vocab-size",
    "experts": "num-experts",
    "topk": "moe-router-topk",
    "tp": "tensor-model-parallel-size",
    "pp": "pipeline-model-parallel-size",
    "cp": "context-parallel-size",
    "ep": "expert-model-parallel-size",
    "etp": "expert-tensor-parallel-size",
    "micro_batch": "micro-batch-size",
    "global_batch": "global-batch-size",
    "flash_attn": "attention-backend",
}
EXPERTS = {
    "moe_ffn": "moe-ffn-hidden-size",
    "shared_experts": "moe-shared-expert-intermediate-size",
}
#: Devices of the release tests, which the table leaves blank: those with which state
#: and workspaces give the bytes between steps that the table prints.
_RELEASES = {
    "gpt3_15b_8t": 256,
    "mixtral_8x22b": 128,
    "mixtral_8x7b_alltoall": 128,
    "mixtral_8x7b_tp1pp4ep8vpp8": 64,
    "deepseekv3_proxy_flex_tp1pp4": 64,
    "deepseekv3_proxy_flex_tp2pp2": 32,
}
#: Flags that tests are named for and the table does not hold.
_NAMED = {
    "defer_embedding_wgrad_compute": "defer-embedding-wgrad-compute",
    "no_create_attention_mask_in_dataloader": "no-create-attention-mask-in-dataloader",
}


def arguments_of(row: Row) -> Arguments:
    """Return a test's arguments."""
    found: dict[str, Value] = {
        name: value if isinstance(value, bool) else str(value)
        for name, value in arguments(row).items()
    }
    columns = {**COLUMNS, **(EXPERTS if row.text("experts") else {})}
    for column, name in columns.items():
        if row.text(column) not in ("", "0"):
            found.setdefault(name, row.text(column))
    found.update(
        {flag: True for word, flag in _NAMED.items() if word in row.text("model")}
    )
    found.update(flags_of(row))
    found.update(_recompute(row.text("recompute")))
    found.update(_precision(row.text("precision")))
    return Arguments(found)


def flags_of(row: Row) -> dict[str, Value]:
    """Return the arguments that columns of yes and no stand for."""
    found: dict[str, Value] = {}
    if row.flag("gated_mlp"):
        found["swiglu"] = True
    if row.flag("tied_emb") is False:
        found["untie-embeddings-and-output-weights"] = True
    if row.flag("sp"):
        found["sequence-parallel"] = True
    if row.text("vpp") not in ("", "1"):
        found["num-virtual-stages-per-pipeline-rank"] = row.text("vpp")
    if row.text("zero_stage").startswith(("1", "megatron-fsdp")):
        found["use-distributed-optimizer"] = True
    return found


def _recompute(text: str) -> dict[str, Value]:
    """Read ``full:uniform:1`` or ``selective:[mlp moe_act]``."""
    kind, _, rest = text.partition(":")
    if kind == "full":
        method, _, count = rest.partition(":")
        return {
            "recompute-granularity": "full",
            "recompute-method": method or "uniform",
            "recompute-num-layers": count or "1",
        }
    if kind == "selective":
        names = tuple(rest.strip("[]").split()) or ("core_attn",)
        return {"recompute-granularity": "selective", "recompute-modules": names}
    return {}


def _precision(text: str) -> dict[str, Value]:
    """Read ``bf16+fp8(hybrid,tensorwise)``."""
    kind, _, rest = text.partition("+fp8(")
    if not rest:
        return {"fp16": True} if kind == "fp16" else {}
    shape, _, recipe = rest.rstrip(")").partition(",")
    return {"fp8-format": shape, "fp8-recipe": recipe or "delayed"}


def world_of(row: Row) -> int:
    """Return the devices: stated, by dp, of a known release, or one node of 8."""
    groups = 1
    for column in ("tp", "pp", "cp"):
        groups *= row.whole(column) or 1
    if stated := row.whole("num_gpus"):
        return stated
    if ranks := row.whole("dp"):
        return ranks * groups
    test = row.text("model").rpartition("/")[2]
    known = [n for name, n in _RELEASES.items() if test.startswith(name)]
    if known and "release" in test:
        return known[0]
    return max(groups, 4 if "_1node" in test and row.text("gpu") == "GB200" else 8)


def remade(rows: Iterable[Row]) -> frozenset[str]:
    """Return tests with an ``lts`` golden on two machines.

    The golden of ``dgx_a100`` was then made again with newer software, and the one of
    ``dracooci`` left as it was.
    """
    return frozenset(
        row.text("model") for row in rows if "lts" in row.id and "dracooci" in row.id
    )


def attention(
    row: Row, args: Arguments, generation: str, remade: frozenset[str]
) -> Backend:
    """Return the attention of a test.

    Goldens of ``dracooci``, and those of ``lts`` that were never made again, are of
    a FlashAttention before 2.4.1: it has no deterministic backward, and with
    ``--deterministic-mode`` TransformerEngine falls back to unfused attention.
    """
    chosen = attention_of(args, generation)
    auto = args.text("attention-backend", "auto") == "auto"
    old = "dracooci" in row.id or (
        row.id.endswith("lts-dgx_a100") and row.text("model") not in remade
    )
    return UNFUSED if auto and old and args.has("deterministic-mode") else chosen


def run_of(row: Row, generation: str, remade: frozenset[str] = frozenset()) -> Run:
    """Return the run of a test.

    Raises
    ------
    InputError
        If the row lacks an argument, or a layer is of a kind that is not known.
    """
    args = arguments_of(row)
    chosen = attention(row, args, generation, remade)
    run = read_run(args, world_of(row), generation, chosen)
    # These goldens are of a PyTorch that scripts Megatron's fused functions.
    software = replace(run.software, scripted="dracooci" in row.id)
    return replace(run, software=software)
