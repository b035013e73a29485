"""Words of the table and what they mean: frameworks, formats, sharding, recompute."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from ...models.layout import RECOMPUTE_FULL, recompute_code
from ...models.time.run import run_of

if TYPE_CHECKING:
    from .row import Row

#: Stacks by a word of the framework's name, the first that is found.
_STACKS = (
    ("maxtext", "maxtext"),
    ("paxml", "maxtext"),
    ("jax", "maxtext"),
    ("llm-foundry", "llm-foundry"),
    ("composer", "llm-foundry"),
    ("torchtitan", "torchtitan"),
    ("nanotron", "nanotron"),
    ("deepspeed", "megatron-deepspeed"),
    ("primus", "primus"),
    ("bridge", "megatron-bridge"),
    ("nemo", "nemo"),
    ("megatron-lm 2021", "megatron-2022"),
    ("megatron-lm 2022", "megatron-2022"),
    ("galvatron", "galvatron"),
    ("megatron", "megatron-core"),
)
Workload = Literal["pretrain", "sft", "lora"]
Sharding = Literal["none", "zero-1", "zero-2", "zero-3", "unsure"]


def stack_of(row: Row) -> str:
    """Return the stack of a row, ``megatron-core`` where none is named."""
    text = row.words("framework")
    for word, stack in _STACKS:
        if word in text:
            return stack
    return "megatron-core"


def release_of(row: Row) -> str:
    """Return the release that a row names: a container, a version or a commit's day."""
    text = row.words("notes", "framework", "source", "extras")
    if found := re.search(r"\b(2[0-9]\.\d\d(?:\.\d\d)?)(?: nemo|\b)", text):
        return found[1]
    # The day from which a document of NVIDIA's is read comes with its commit.
    if found := re.search(r"\((20\d\d-\d\d-\d\d)\)", text):
        return found[1]
    return ""


def precision_of(row: Row) -> tuple[str, str, tuple[str, ...]]:
    """Return the format of weights, the recipe of matrix products, the rules used.

    The recipe is empty in 16 bits, else a name of the profiles' product laws.
    """
    text = row.words("precision").replace("_", "").replace("-", "")
    both = row.words("precision", "extras")
    if not text:
        return "bf16", "", ("precision",)
    half = "fp16" if "fp16" in text and "bf16" not in text else "bf16"
    if "nvfp4" in text or "fp4" in text:
        return "bf16", "nvfp4", ()
    if "mxfp8" in text or "fp8mx" in text or "mxrecipe" in both.replace(" ", ""):
        return "bf16", "mxfp8", ()
    if "fp8" not in text and "float8" not in text:
        return half, "", ()
    if "block" in both and "mx alt" in both:
        return "bf16", "mxfp8", ()
    if "block" in both or "rowwise" in both:
        return "bf16", "fp8-block", ()
    named = any(word in both for word in ("current", "tensor", "delayed", "cs"))
    return "bf16", "fp8", () if named else ("nearest-recipe",)


def sharding_of(row: Row) -> Sharding:
    """Return how gradients, states and weights are sharded."""
    text = row.words("zero_stage")
    if "or fsdp" in text:
        return "unsure"
    if "fsdp" in text or "optim_grads_params" in text or "hsdp" in text:
        return "zero-3"
    if found := re.match(r"(?:zero-?)?([0-3])\b", text):
        return ("none", "zero-1", "zero-2", "zero-3")[int(found[1])]
    if "dist" in text and "opt" in text:
        return "zero-1"
    return "none"


def sharded_over(row: Row) -> int | None:
    """Return the ranks that weights are sharded over where the row says so."""
    found = re.search(r"fsdp ?\(?(\d+)", row.words("zero_stage"))
    return int(found[1]) if found else None


def recompute_of(row: Row, *, fused: bool) -> tuple[int | None, tuple[str, ...]]:
    """Return the recompute code, None where it is not stated, and the rules used."""
    text = row.words("recompute")
    if not text or "not stated" in text or "see recipe" in text or "see script" in text:
        return None, ()
    mode = re.search(r"'mode': '([a-z_]+)'", text)
    if mode:
        return _jax_mode(mode[1], text)
    if text.startswith("none") or text in ("off", "false", "0"):
        return 0, ()
    if text.startswith("full") and "0 layers" not in text:
        return RECOMPUTE_FULL, ()
    names = [
        name
        for name in ("core_attn", "layernorm", "mla_up_proj", "moe_act", "mlp")
        if name in text
    ]
    if re.search(r"\bmoe\b", text):
        names.append("moe")
    if names:
        return recompute_code("+".join(dict.fromkeys(names))), ()
    if "selective" in text:
        plain = "core_attn" if not fused else "layernorm"
        if "op-level" in text:  # keeps every second product
            plain = "core_attn+layernorm+mlp"
        return recompute_code(plain), ("recompute-selective",)
    if "minimal" in text:
        return recompute_code("layernorm"), ("recompute-selective",)
    return None, ()


def _jax_mode(mode: str, text: str) -> tuple[int | None, tuple[str, ...]]:
    """Read MaxText's and Primus's modes."""
    if mode == "none":
        return 0, ()
    if mode.startswith("minimal"):
        return recompute_code("layernorm"), ("recompute-selective",)
    if mode.startswith(("save_dot_except_mlp", "full_by_id")):
        return recompute_code("layernorm+mlp+moe"), ("recompute-selective",)
    return RECOMPUTE_FULL, ()


def workload_of(row: Row) -> Workload:
    """Return what is trained: everything, all weights on answers, or adapters."""
    text = row.words("extras", "model", "notes", "source")
    if "lora" in text.replace("q_lora", "").replace("kv_lora", ""):
        return "lora"
    if re.search(r"\bsft\b|finetun|fine-tun", text):
        return "sft"
    return "pretrain"


def capacity_of(row: Row) -> float:
    """Return the capacity factor of the experts, 0 where no token is dropped."""
    text = row.words("extras", "notes")
    if found := re.search(r"capacity_factor': ([0-9.]+)", text):
        return float(found[1])
    if found := re.search(r"capacity factor (\d+(?:\.\d+)?)", text):
        return float(found[1])
    return 1.0 if "tokendrop" in text or "token-drop" in text else 0.0


def attention_of(row: Row, stack: str) -> str:
    """Return the kernel of attention: unfused, fa2, or empty for the device's own."""
    if row.text("flash_attn").lower() in ("no", "false", "0", "unfused", "local"):
        return "unfused"
    own = run_of(stack).attention
    return "" if own == "unfused" and row.text("flash_attn") else own
