"""The values of the axes: their names, and how a user writes each of them.

Axes of whole numbers stand for themselves. Axes of names are coded: the code is the
position in one of the tuples of this module. ``recompute`` is a set of bits over
``RECOMPUTE_MODULES`` below ``RECOMPUTE_FULL``; from there on whole layers are run
again: ``RECOMPUTE_FULL`` each by itself, ``RECOMPUTE_FULL + n`` in groups of n
(``full-uniform-n``), ``RECOMPUTE_BLOCK + n`` the first n of every chunk
(``full-block-n``).
"""

from __future__ import annotations

from .errors import InputError, unknown_name

SCHEDULES = (
    "1f1b",
    "interleaved",
    "gpipe",
    "zb-h1",
    "zb-h2",
    "zbv",
    "v-half",
    "v-min",
    "dualpipe",
    "dualpipev",
)
SPLITS = ("even", "balanced", "first-last")
#: Stages of ZeRO (2 and 3 are Megatron-FSDP's where Megatron runs them), then the
#: three kinds of FSDP, all of which shard parameters, gradients and optimizer: by
#: Megatron, by torch, and by Megatron inside each of several replicas.
SHARDINGS = ("none", "zero-1", "zero-2", "zero-3", "megatron-fsdp", "fsdp2", "hsdp")
RECOMPUTE_MODULES = (
    "core_attn",
    "layernorm",
    "mla_up_proj",
    "mlp",
    "moe",
    "moe_act",
    "shared_experts",
)
RECOMPUTE_FULL = 1 << len(RECOMPUTE_MODULES)
#: Codes above it are ``full-block-n``, those between it and ``RECOMPUTE_FULL``
#: ``full-uniform-n``; n is below ``RECOMPUTE_FULL`` in both.
RECOMPUTE_BLOCK = 2 * RECOMPUTE_FULL

#: How context parallelism exchanges keys and values; ``auto`` is what fits the
#: model, and ``hierarchical`` is all-to-all inside a node and a ring across.
CP_STYLES = ("auto", "p2p", "a2a", "all-gather", "hierarchical")
PRECISIONS = (
    "bf16",
    "fp16",
    "fp8-delayed",
    "fp8-tensor",
    "fp8-block",
    "mxfp8",
    "nvfp4",
)
CROSS_ENTROPIES = ("unfused", "native-fused", "te-fused")
#: What lies on the host: bit 0 the optimizer, bit 1 activations by module.
OFFLOADS = ("none", "optimizer", "activations", "optimizer+activations")
DISPATCHERS = ("allgather", "alltoall", "flex")
#: Communication that runs beside computation, each on or off.
OVERLAPS = (
    "overlap_grads",
    "overlap_params",
    "overlap_tp",
    "overlap_ep",
    "overlap_shared",
)

#: Names of the values of an axis, by code.
NAMES = {
    "schedule": SCHEDULES,
    "split": SPLITS,
    "sharding": SHARDINGS,
    "cp_style": CP_STYLES,
    "precision": PRECISIONS,
    "cross_entropy": CROSS_ENTROPIES,
    "offload": OFFLOADS,
    "dispatcher": DISPATCHERS,
}
SWITCHES = ("sp", *OVERLAPS)
_UNIFORM, _BLOCK = "full-uniform-", "full-block-"


def recompute_layers(code: int) -> tuple[int, int]:
    """Return the layers of a recomputed group, and of a recomputed block.

    Returns
    -------
    tuple of int
        (n, 0) where whole layers are run again in groups of n, (1, n) where the
        first n of a chunk are, and (1, 0) for all other codes.
    """
    if code > RECOMPUTE_BLOCK:
        return 1, code - RECOMPUTE_BLOCK
    return max(code - RECOMPUTE_FULL, 1), 0


def recompute_label(code: int) -> str:
    """Name a recompute choice: none, full, or modules joined by ``+``."""
    if code >= RECOMPUTE_FULL:
        group, block = recompute_layers(code)
        if block:
            return f"{_BLOCK}{block}"
        return f"{_UNIFORM}{group}" if group > 1 else "full"
    names = [n for i, n in enumerate(RECOMPUTE_MODULES) if code >> i & 1]
    return "+".join(names) or "none"


def recompute_code(label: str) -> int:
    """Read a recompute choice: none, full, or modules joined by ``+``."""
    if label in ("none", "full"):
        return RECOMPUTE_FULL if label == "full" else 0
    for start, base in ((_UNIFORM, RECOMPUTE_FULL), (_BLOCK, RECOMPUTE_BLOCK)):
        if label.startswith(start):
            number = _whole("the number of recomputed layers", label[len(start) :])
            if number >= RECOMPUTE_FULL:
                raise InputError(
                    f"{start}n has n below {RECOMPUTE_FULL}, got {number:,}"
                )
            # Groups of one layer are what "full" says.
            return base if start == _UNIFORM and number == 1 else base + number
    code = 0
    for name in label.split("+"):
        if name not in RECOMPUTE_MODULES:
            known = ("none", "full", f"{_UNIFORM}n", f"{_BLOCK}n", *RECOMPUTE_MODULES)
            raise unknown_name("recompute choice", name, known)
        code |= 1 << RECOMPUTE_MODULES.index(name)
    return code


def value_label(name: str, code: int) -> str:
    """Write one value of an axis as a user does."""
    if name == "recompute":
        return recompute_label(code)
    if name in SWITCHES:
        return "on" if code else "off"
    return NAMES[name][code] if name in NAMES else str(code)


def value_code(name: str, text: str) -> int:
    """Read one value of an axis as a user writes it.

    Raises
    ------
    InputError
        If the value is unknown, or a size is below 1.
    """
    text = text.strip().lower()
    if name == "recompute":
        return recompute_code(text)
    if name in SWITCHES:
        if text not in ("on", "off", "true", "false", "1", "0"):
            raise InputError(f"{name} is on or off, got {text!r}")
        return int(text in ("on", "true", "1"))
    if name in NAMES:
        if text not in NAMES[name]:
            raise unknown_name(name, text, NAMES[name])
        return NAMES[name].index(text)
    return _whole(name, text)


def _whole(what: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise InputError(
            f"{what} must be a whole number of at least 1, got {text[:40]!r}"
        )
    return int(text)
