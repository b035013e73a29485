"""What each optional axis tells Megatron: options as expressions of the axes.

An axis that has its default alone says nothing, so that rules fold to what they say
about the planner's own launch files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..models.dialects.megatron import OPTIONS
from ..models.expr import as_expr, at_least, equals, modulo, one_of, table, where
from ..models.layout import (
    OPTIONAL,
    OVERLAPS,
    PRECISIONS,
    RECOMPUTE_BLOCK,
    RECOMPUTE_FULL,
    SHARDINGS,
    recompute_layers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..models.expr import Expr
    from ..models.layout import Dims

Options = dict[str, "Expr"]
_OVERLAPS = dict(
    zip(
        OVERLAPS,
        (
            "overlap_grad_reduce",
            "overlap_param_gather",
            "tp_comm_overlap",
            "overlap_moe_expert_parallel_comm",
            "moe_shared_expert_overlap",
        ),
        strict=True,
    )
)
#: For each precision: the format of the rest, fp8, its recipe, fp4.
_FORMATS = {
    "bf16": ("bf16", "none", "delayed", 0),
    "fp16": ("fp16", "none", "delayed", 0),
    "fp8-delayed": ("bf16", "hybrid", "delayed", 0),
    "fp8-tensor": ("bf16", "hybrid", "tensorwise", 0),
    "fp8-block": ("bf16", "e4m3", "blockwise", 0),
    "mxfp8": ("bf16", "e4m3", "mxfp8", 0),
    "nvfp4": ("bf16", "none", "delayed", 1),
}
#: Modules whose inputs activation offload moves; those of experts where there are.
OFFLOADED = ("qkv_linear", "core_attn", "attn_proj")
OFFLOADED_EXPERTS = ("expert_fc1", "moe_act")


def axis_options(dims: Dims, *, moe: bool) -> Mapping[str, Expr]:
    """Return the options that the optional axes, and new codes of others, set.

    Parameters
    ----------
    dims
        The axes.
    moe
        Whether the model has experts.
    """
    found: Options = {}
    if _differs(dims, "cp_style"):
        found["cp_comm_type"] = dims.cp_style
    if _differs(dims, "dispatcher"):
        found["moe_token_dispatcher_type"] = dims.dispatcher
    if _differs(dims, "instances"):
        found["num_distributed_optimizer_instances"] = dims.instances
    if _differs(dims, "precision"):
        found |= _precision(dims.precision)
    if _differs(dims, "offload"):
        found |= _offload(dims.offload, moe)
    for name, option in _OVERLAPS.items():
        if _differs(dims, name):
            found[option] = getattr(dims, name)
    found |= _sharding(dims.sharding)
    found |= _recompute(dims.recompute)
    return found


def _differs(dims: Dims, name: str) -> bool:
    axis: Expr = getattr(dims, name)
    return axis.constant != OPTIONAL[name]


def _precision(axis: Expr) -> Options:
    rows = [_FORMATS[name] for name in PRECISIONS]

    def coded(option: str, column: int) -> Expr:
        return table(axis, [OPTIONS[option].labels.index(r[column]) for r in rows])

    return {
        "precision": coded("precision", 0),
        "fp8": coded("fp8", 1),
        "fp8_recipe": coded("fp8_recipe", 2),
        "fp4": table(axis, [int(row[3]) for row in rows]),
    }


def _offload(axis: Expr, moe: bool) -> Options:
    modules = OFFLOADED + (OFFLOADED_EXPERTS if moe else ())
    known = OPTIONS["offload_modules"].labels
    bits = sum(1 << known.index(name) for name in modules)
    optimizer, activations = modulo(axis, 2), at_least(axis, 2)
    return {
        "optimizer_cpu_offload": optimizer,
        # The launcher asks for it, so the launch file says both.
        "use_precision_aware_optimizer": optimizer,
        "fine_grained_activation_offloading": activations,
        "offload_modules": where(activations, bits, 0),
    }


def _sharding(axis: Expr) -> Options:
    if axis.hi < SHARDINGS.index("megatron-fsdp"):
        return {}
    by_megatron = [SHARDINGS.index(name) for name in ("megatron-fsdp", "hsdp")]
    return {
        "use_megatron_fsdp": one_of(axis, by_megatron),
        "use_torch_fsdp2": equals(axis, SHARDINGS.index("fsdp2")),
    }


def _recompute(axis: Expr) -> Options:
    if axis.hi <= RECOMPUTE_FULL:
        return {}
    methods = OPTIONS["recompute_method"].labels
    auto, uniform, block = (methods.index(n) for n in ("auto", "uniform", "block"))

    def method(code: int) -> int:
        if code <= RECOMPUTE_FULL:
            return auto
        return block if code > RECOMPUTE_BLOCK else uniform

    def number(code: int) -> int:
        return max(recompute_layers(code))

    codes = range(axis.hi + 1)
    return {
        "recompute_method": table(axis, [method(c) for c in codes]),
        "recompute_num_layers": table(axis, [number(c) for c in codes]),
    }


def settings(point: Mapping[str, int], *, moe: bool) -> Iterator[tuple[str, int]]:
    """Yield the options of one configuration that differ from the defaults."""
    from ..models.expr import value
    from ..models.layout import AXES, DERIVED, Dims

    given = {n: (point[n],) for n in (*AXES, *DERIVED) if n in point}
    for name, code in axis_options(Dims.of(given), moe=moe).items():
        found = value(as_expr(code), {})
        if found != OPTIONS[name].default:
            yield name, found
