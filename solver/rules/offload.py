"""Rules of offloading activations to the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    Expr,
    at_least,
    at_most,
    both,
    equals,
    implies,
    less,
    negate,
)
from .rule import Rule
from .sources import CONFIG

if TYPE_CHECKING:
    from .facts import Facts

_LAYERS = "cpu_offloading_num_layers"
_FINE = "fine_grained_activation_offloading"


def _some_layers(facts: Facts) -> Expr:
    number = facts.option(_LAYERS)
    inside = both(at_least(number, 0), less(number, facts.sizes.layers))
    return implies(facts.on("cpu_offloading"), inside)


def _one_rank(facts: Facts) -> Expr:
    return implies(facts.on("cpu_offloading"), at_most(facts.dims.pp, 1))


def _known_modules(facts: Facts) -> Expr:
    some = at_least(facts.option("offload_modules"), 1)
    return implies(facts.on(_FINE), both(some, facts.known("offload_modules")))


def _projection(facts: Facts) -> Expr:
    needs = implies(
        facts.has("offload_modules", "attn_proj"),
        facts.has("offload_modules", "core_attn"),
    )
    return implies(facts.on(_FINE), needs)


OFFLOAD = (
    Rule(
        id="offload-layers",
        sentence="layer-wise offload keeps at least one of the L layers on the device "
        "and counts from 0 (L = {L})",
        source=f"{CONFIG}: {_LAYERS}",
        body=_some_layers,
        where="config",
    ),
    Rule(
        id="offload",
        sentence="layer-wise offload needs pp = 1",
        source=f"{CONFIG}: cpu_offloading",
        body=_one_rank,
        where="config",
    ),
    Rule(
        id="offload-recompute",
        sentence="layer-wise offload excludes recomputation",
        source=f"{CONFIG}: cpu_offloading",
        body=lambda f: negate(both(f.on("cpu_offloading"), f.recomputes)),
        where="config",
    ),
    Rule(
        id="offload-fine",
        sentence="offload by module excludes layer-wise offload",
        source=f"{CONFIG}: {_FINE}",
        body=lambda f: negate(both(f.on("cpu_offloading"), f.on(_FINE))),
        where="config",
        since="0.16",
    ),
    Rule(
        id="offload-modules",
        sentence="offload by module names at least one module, all of them known",
        source=f"{CONFIG}: offload_modules",
        body=_known_modules,
        where="config",
        since="0.16",
    ),
    Rule(
        id="offload-attn-proj",
        sentence="offloading attn_proj needs offloading core_attn, whose output it "
        "reads",
        source=f"{CONFIG}: offload_modules",
        body=_projection,
        where="config",
        since="0.16",
    ),
    Rule(
        id="offload-nothing",
        sentence="layer-wise offload of 0 layers does nothing",
        source=f"{CONFIG}: {_LAYERS} = 0 is accepted",
        body=lambda f: negate(
            both(f.on("cpu_offloading"), equals(f.option(_LAYERS), 0))
        ),
        where="never",
        checker="step",
        kind="advice",
    ),
)
