"""Rules of number formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    TRUE,
    Expr,
    at_least,
    at_most,
    both,
    divides,
    either,
    floor_div,
    implies,
    maximum,
    negate,
    table,
)
from .rule import Rule
from .sources import CONFIG, ENGINE, LAUNCHER

if TYPE_CHECKING:
    from .facts import Facts

#: Multiples that the scaling of each recipe wants of a matrix's sides, in the
#: order of the option; an unknown recipe wants none.
_UNITS = (16, 16, 128, 32, 1, 1)


_BEFORE = (
    "Megatron-LM before core_v0.16.0 megatron/training/arguments.py, validate_args"
)


def _fp8(facts: Facts) -> Expr:
    return negate(facts.says("fp8", "none"))


def _ends(facts: Facts) -> Expr:
    """Compare with L // pp, however uneven the stages are."""
    roof = floor_div(facts.sizes.layers, facts.dims.pp)
    counts = [
        facts.option("num_layers_at_start_in_bf16"),
        facts.option("num_layers_at_end_in_bf16"),
    ]
    inside = both(*(both(at_least(n, 0), at_most(n, roof)) for n in counts))
    asked = both(_fp8(facts), facts.on("first_last_layers_bf16"))
    return implies(asked, inside)


def _delayed_ends(facts: Facts) -> Expr:
    asked = both(_fp8(facts), facts.on("first_last_layers_bf16"))
    return implies(asked, negate(facts.says("fp8_recipe", "delayed")))


def _custom(facts: Facts) -> Expr:
    return negate(both(_fp8(facts), facts.says("fp8_recipe", "custom")))


def _gathered(facts: Facts) -> Expr:
    gathers = facts.on("fp8_param_gather")
    sharded = either(
        facts.distributed_optimizer,
        facts.on("use_torch_fsdp2"),
        facts.on("use_megatron_fsdp"),
    )
    return implies(gathers, sharded)


def _sides(facts: Facts) -> Expr:
    d, sizes = facts.dims, facts.sizes
    unit = table(facts.option("fp8_recipe"), _UNITS)
    over_tp = (*sizes.dense_ffn, *sizes.shared_ffn)
    whole = both(
        divides(unit, sizes.hidden),
        *(divides(d.tp * unit, width) for width in over_tp),
        *(divides(maximum(d.etp, 1) * unit, width) for width in sizes.expert_ffn),
    )
    return implies(_fp8(facts), whole)


def _device(facts: Facts) -> Expr:
    formats = facts.sizes.formats
    if not formats:
        return TRUE
    scaled = facts.says("fp8_recipe", "mxfp8")
    legal = []
    if "fp8" not in formats:
        legal.append(either(negate(_fp8(facts)), scaled))
    if "mxfp8" not in formats:
        legal.append(negate(both(_fp8(facts), scaled)))
    if "nvfp4" not in formats and "mxfp4" not in formats:
        legal.append(negate(facts.on("fp4")))
    return both(*legal)


def _experts_half(facts: Facts) -> Expr:
    half = facts.says("precision", "fp16")
    return negate(both(half, at_least(facts.dims.ep, 2)))


def _grouped_half(facts: Facts) -> Expr:
    if not facts.sizes.moe:
        return TRUE
    return implies(facts.on("moe_grouped_gemm"), facts.says("precision", "bf16"))


PRECISION = (
    Rule(
        id="ep-fp16",
        sentence="expert parallelism excludes fp16",
        source=_BEFORE,
        body=_experts_half,
        where="launcher only",
        checker="launcher",
        until="0.15",
    ),
    Rule(
        id="grouped-bf16",
        sentence="grouped GEMM of experts needs bf16",
        source=_BEFORE,
        body=_grouped_half,
        where="launcher only",
        checker="launcher",
        until="0.15",
    ),
    Rule(
        id="fp8-fp4",
        sentence="FP8 and FP4 exclude each other",
        source=f"{CONFIG}: fp8, fp4",
        body=lambda f: negate(both(_fp8(f), f.on("fp4"))),
        where="config",
        since="0.15",
    ),
    Rule(
        id="fp8-param",
        sentence="FP8 parameters need FP8",
        source=f"{CONFIG}: fp8_param",
        body=lambda f: implies(f.on("fp8_param_gather"), _fp8(f)),
        where="config",
    ),
    Rule(
        id="fp8-param-sharding",
        sentence="a gather of FP8 parameters needs sharding: zero-1 or FSDP",
        source=f"{LAUNCHER}: fp8_param_gather",
        body=_gathered,
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="fp8-ends",
        sentence="with FP8, the layers kept in bf16 at each end are 0 to L // pp, "
        "however uneven the stages (L = {L})",
        source=f"{CONFIG}: num_layers_at_start_in_bf16, num_layers_at_end_in_bf16",
        body=_ends,
        where="config",
    ),
    Rule(
        id="fp8-ends-delayed",
        sentence="delayed scaling keeps no layers in bf16",
        source=f"{CONFIG}: first_last_layers_bf16",
        body=_delayed_ends,
        where="config",
    ),
    Rule(
        id="fp8-custom",
        sentence="the custom FP8 recipe needs a quantizer, which no option here gives",
        source=f"{CONFIG}: fp8_quantizer_factory",
        body=_custom,
        where="config",
        since="0.16",
    ),
    Rule(
        id="fp8-sides",
        sentence="the sides of FP8 matrices are multiples of 16 on every rank, of 128 "
        "by blocks, of 32 for MXFP8",
        source=f"{ENGINE} pytorch/utils.py, assert_dim_for_fp8_exec; MXFP8 and block "
        "quantizers",
        body=_sides,
        where="first forward",
        checker="transformer-engine",
    ),
    Rule(
        id="fp8-device",
        sentence="the device has matrix units of the number format",
        source="the vendors' data sheets, as in the catalogue of devices",
        body=_device,
        where="first forward",
        checker="transformer-engine",
    ),
)
