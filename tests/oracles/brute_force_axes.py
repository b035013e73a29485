"""The sentences on the optional axes, one check a sentence, plain numbers alone.

Imports nothing of the product. An axis that a point does not name is left as the
launch files have it.
"""

from dataclasses import dataclass, replace
from math import gcd


@dataclass(frozen=True)
class More:
    """What the sentences on optional axes know besides ``brute_force.Facts``.

    ``first`` gives for an axis without meaning the first of its listed values;
    ``formats`` is empty for a device nobody knows.
    """

    first: dict[str, object]
    hidden: int
    mtp: int = 0
    tied: bool = False
    window: bool = False
    sinks: bool = False
    formats: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Sizes:
    """Widths and heads of the model, each a set over its kinds of layers."""

    heads: frozenset[int]
    kv_heads: frozenset[int]
    dense_ffn: frozenset[int]
    expert_ffn: frozenset[int]
    shared_ffn: frozenset[int]
    experts: int


#: Sharding by Megatron's distributed optimizer; FSDP2 is torch's own.
DISTRIBUTED = ("zero-1", "megatron-fsdp", "hsdp")
UNITS = {"fp8-delayed": 16, "fp8-tensor": 16, "fp8-block": 128, "mxfp8": 32}
STYLES = {"sinks": ("auto", "a2a"), "window": ("auto", "a2a", "all-gather")}


def style_fits(style: str, cp: int, tp: int, s: Sizes, more: More) -> bool:
    heads = s.heads | s.kv_heads
    if style == "hierarchical":
        levels = [a for a in range(2, cp) if cp % a == 0 and cp // a > 1]
        if not any(all(h % (tp * a) == 0 for h in heads) for a in levels):
            return False
    if cp == 1:
        return style == more.first["cp_style"]
    if more.sinks and style not in STYLES["sinks"]:
        return False
    if more.window and not more.sinks and style not in STYLES["window"]:
        return False
    return style != "a2a" or all(h % (tp * cp) == 0 for h in heads)


def format_fits(precision: str, tp: int, etp: int, s: Sizes, more: More) -> bool:
    if more.formats:
        if precision == "fp16" and "fp16" not in more.formats:
            return False
        if precision.startswith("fp8") and "fp8" not in more.formats:
            return False
        if precision == "mxfp8" and "mxfp8" not in more.formats:
            return False
        if precision == "nvfp4" and not more.formats & {"nvfp4", "mxfp4"}:
            return False
    unit = UNITS.get(precision)
    if unit is None:
        return True
    return (
        more.hidden % unit == 0
        and all(w % (tp * unit) == 0 for w in s.dense_ffn | s.shared_ffn)
        and all(w % (etp * unit) == 0 for w in s.expert_ffn)
    )


def dispatcher_fits(dispatcher: str, ep: int, etp: int, s: Sizes, more: More) -> bool:
    if not s.experts:
        return dispatcher == more.first["dispatcher"]
    return dispatcher != "flex" or etp * ep > 1


def sharding_fits(sharding: str, precision: str, pp: int, ep: int, more: More) -> bool:
    if sharding == "fsdp2":
        return pp == 1 and ep == 1 and not more.tied and precision != "fp16"
    return sharding in ("none", *DISTRIBUTED)


def instances_fit(sharding: str, instances: int, ranks: int, edp: int) -> bool:
    if ranks % instances or edp % instances:
        return False
    if sharding == "hsdp":
        return instances > 1
    return instances == 1 or sharding == "zero-1"


def offload_fits(offload: str, sharding: str) -> bool:
    return "optimizer" not in offload or sharding in DISTRIBUTED


def overlaps_fit(sharding: str, grads: object, params: object) -> bool:
    return not params or (bool(grads) and sharding in DISTRIBUTED)


def experts_overlap_fits(
    point: dict[str, object], pp: int, vpp: int, ep: int, more: More
) -> bool:
    if not point.get("overlap_ep"):
        return True
    if more.mtp > 1 or (more.mtp == 1 and pp == 1):
        return False
    if point.get("overlap_shared") or str(point["recompute"]).startswith("full"):
        return False
    return ep > 1 and (pp == 1 or vpp > 1) and point["dispatcher"] != "allgather"


def shared_overlap_fits(point: dict[str, object], s: Sizes) -> bool:
    if not point.get("overlap_shared"):
        return True
    if not s.shared_ffn or point["dispatcher"] != "alltoall":
        return False
    chosen = point["recompute"]
    return not (isinstance(chosen, frozenset) and "shared_experts" in chosen)


def recompute_fits(
    chosen: object, precision: str, chunks: list[int], more: More
) -> bool:
    """``chosen`` is a set of modules, or a text that begins with ``full``."""
    if isinstance(chosen, frozenset):
        return not (precision == "fp8-delayed" and chosen & {"layernorm", "moe_act"})
    text = str(chosen)
    if text == "full":
        return True
    number = int(text.rsplit("-", 1)[1])
    if text.startswith("full-uniform"):
        return not more.mtp and gcd(*chunks) % number == 0
    return number < max(chunks)


def tensor_overlap_fits(point: dict[str, object]) -> bool:
    return not point.get("overlap_tp") or bool(point["sp"])


def fits(point: dict[str, object], s: Sizes, more: More, chunks: list[int]) -> bool:
    """Whether a complete point keeps every sentence on the optional axes."""
    plain = {"cp_style": "auto", "precision": "bf16", "offload": "none"}
    plain |= {"dispatcher": "alltoall"}
    p: dict[str, object] = {**plain, "instances": 1, **point}
    n = {k: v for k, v in p.items() if isinstance(v, int)}
    first = replace(more, first={**plain, **more.first})
    sharding, precision = str(p["sharding"]), str(p["precision"])
    tp, pp, ep, etp = n["tp"], n["pp"], n["ep"], n["etp"]
    return (
        style_fits(str(p["cp_style"]), n["cp"], tp, s, first)
        and format_fits(precision, tp, etp, s, first)
        and dispatcher_fits(str(p["dispatcher"]), ep, etp, s, first)
        and sharding_fits(sharding, precision, pp, ep, first)
        and instances_fit(sharding, n["instances"], n["dp"] * n["cp"], n["edp"])
        and offload_fits(str(p["offload"]), sharding)
        and overlaps_fit(sharding, p.get("overlap_grads"), p.get("overlap_params"))
        and tensor_overlap_fits(p)
        and experts_overlap_fits(p, pp, n["vpp"], ep, first)
        and shared_overlap_fits(p, s)
        and recompute_fits(p["recompute"], precision, chunks, first)
    )
