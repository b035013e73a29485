"""Advice on placement, and combinations known to be bad."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    TRUE,
    Expr,
    both,
    divides,
    equals,
    exact_div,
    implies,
    modulo,
    negate,
)
from .rule import Rule
from .sources import MTP

if TYPE_CHECKING:
    from .facts import Facts


def _domain(facts: Facts) -> Expr:
    d, domain = facts.dims, facts.sizes.domain
    if not domain:
        return TRUE
    return both(divides(d.tp, domain), divides(d.etp, domain))


def _predictions(facts: Facts) -> Expr:
    if (facts.sizes.mtp_layers or 0) < 2 or facts.structures.layout is not None:
        return TRUE
    return facts.by_family


def _odd_layers(facts: Facts) -> Expr:
    d = facts.dims
    per_chunk = exact_div(facts.sizes.layers, d.pp * d.vpp)
    even = equals(modulo(per_chunk, 2), 0)
    return implies(facts.on("overlap_moe_expert_parallel_comm"), even)


def _no_empty_stage(facts: Facts) -> Expr:
    layout = facts.structures.layout
    if layout is None or not facts.sizes.moe or all(layout.stages):
        return TRUE
    return negate(facts.on("overlap_moe_expert_parallel_comm"))


def _fp8_memory(facts: Facts) -> Expr:
    scaled = both(negate(facts.says("fp8", "none")), facts.says("fp8_recipe", "mxfp8"))
    return negate(both(scaled, facts.on("fp8_param_gather")))


PLACEMENT = (
    Rule(
        id="tp-node",
        sentence="tp and etp stay inside one scale-up domain: they divide its D "
        "devices (D = {D})",
        source="Narayanan et al. 2021 (arXiv 2104.04473), section 3.2: tensor "
        "parallelism across nodes is slow; a default that a space can drop",
        body=_domain,
        where="never",
        checker="product",
        kind="advice",
    ),
    Rule(
        id="mtp",
        sentence="several prediction layers with stages of given sizes are placed by "
        "an explicit layout",
        source=f"{MTP}, get_mtp_num_layers_to_build: they sit with the loss unless "
        "placed",
        body=_predictions,
        where="never",
        checker="product",
        kind="advice",
    ),
)

KNOWN_BAD = (
    Rule(
        id="bad-odd-overlap",
        sentence="an odd number of layers in a chunk hangs when the experts' "
        "all-to-all is overlapped (L = {L})",
        source="Megatron-LM issue 1810",
        body=_odd_layers,
        where="never",
        checker="step",
        kind="known-bad",
    ),
    Rule(
        id="bad-empty-overlap",
        sentence="a stage without any layer hangs when the experts' all-to-all is "
        "overlapped",
        source="Megatron-LM issue 1852",
        body=_no_empty_stage,
        where="never",
        checker="step",
        kind="known-bad",
    ),
    Rule(
        id="bad-mxfp8-gather",
        sentence="a gather of FP8 parameters raises the memory of MXFP8",
        source="Megatron-LM issue 2063",
        body=_fp8_memory,
        where="never",
        checker="step",
        kind="known-bad",
    ),
)
