"""Rules of the styles of context parallelism."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ...models.expr import (
    FALSE,
    TRUE,
    Expr,
    both,
    divides,
    either,
    equals,
    implies,
    less,
    negate,
)
from .rule import Rule
from .sources import CONFIG, ENGINE, LAUNCHER, STATE

if TYPE_CHECKING:
    from .facts import Facts


def _product(facts: Facts) -> Expr:
    sizes = facts.structures.cp_sizes
    return equals(facts.dims.cp, prod(sizes)) if sizes else TRUE


def _levels(facts: Facts) -> Expr:
    styles, sizes = facts.structures.cp_styles, facts.structures.cp_sizes
    if sizes is not None:
        return TRUE
    if styles is not None:
        return FALSE if "a2a+p2p" in styles else TRUE
    asked = facts.says("cp_comm_type", "a2a+p2p")
    return (
        implies(asked, _inner_levels(facts))
        if facts.structures.planned
        else negate(asked)
    )


def _inner_levels(facts: Facts) -> Expr:
    """Whether a level of all-to-all inside cp divides the heads that a rank has."""
    d, sizes = facts.dims, facts.sizes
    heads = (*sizes.heads, *sizes.kv_heads)
    return either(
        *(
            both(
                divides(a, d.cp),
                less(a, d.cp),
                *(divides(d.tp * a, h) for h in heads),
            )
            for a in range(2, d.cp.hi // 2 + 1)
            if all(h % a == 0 for h in heads)
        ),
        # Written last, so that no such level is FALSE rather than an empty choice.
        FALSE,
    )


def _one_per_layer(facts: Facts) -> Expr:
    styles, cp = facts.structures.cp_styles, facts.dims.cp
    if styles is None or len(styles) == facts.sizes.layers:
        return TRUE
    return equals(cp, 1)


def _heads(facts: Facts) -> Expr:
    d, sizes = facts.dims, facts.sizes
    whole = both(*(divides(d.tp * d.cp, h) for h in (*sizes.heads, *sizes.kv_heads)))
    asked = both(facts.says("cp_comm_type", "a2a"), negate(equals(d.cp, 1)))
    return implies(asked, whole)


def _window(facts: Facts) -> Expr:
    sizes = facts.sizes
    if sizes.sinks:
        fits = facts.says("cp_comm_type", "auto", "a2a")
    elif sizes.window:
        fits = facts.says("cp_comm_type", "auto", "a2a", "allgather")
    else:
        return TRUE
    return either(equals(facts.dims.cp, 1), fits)


CONTEXT = (
    Rule(
        id="cp-levels",
        sentence="the sizes of hierarchical context parallelism multiply to cp",
        source=f"{STATE}: hierarchical_context_parallel_sizes",
        body=_product,
        where="groups",
    ),
    Rule(
        id="cp-hierarchy",
        sentence="the style a2a+p2p needs the sizes of its levels, at any cp",
        source=f"{LAUNCHER}: hierarchical_context_parallel_sizes",
        body=_levels,
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="cp-list",
        sentence="a list of styles has one entry for each of the L layers where cp > 1 "
        "(L = {L})",
        source=f"{CONFIG}: cp_comm_type",
        body=_one_per_layer,
        where="config",
    ),
    Rule(
        id="cp-a2a",
        sentence="the style a2a divides heads and key/value heads over tp * cp (H = "
        "{H}, KV = {KV})",
        source=f"{ENGINE} attention/dot_product_attention/context_parallel.py, "
        "attn_forward_func_with_cp",
        body=_heads,
        where="first forward",
        checker="transformer-engine",
    ),
    Rule(
        id="cp-swa",
        sentence="with cp > 1, sliding windows need the style a2a or allgather and "
        "learnable softmax offsets a2a",
        source=f"{ENGINE} attention/dot_product_attention/context_parallel.py, "
        "attn_forward_func_with_cp",
        body=_window,
        where="first forward",
        checker="transformer-engine",
    ),
)
