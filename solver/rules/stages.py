"""Rules of the split: which layers lie on which stage, by family or by size.

The families are this planner's writing of what Megatron is told: ``even`` as it
stands, ``first-last`` as first and last sizes, ``balanced`` as an explicit layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    TRUE,
    Expr,
    as_expr,
    at_least,
    both,
    divides,
    either,
    equals,
    exact_div,
    implies,
    less,
    maximum,
    negate,
    product,
    table,
    total,
    where,
)
from ...models.layout import SPLITS
from ...models.stages import split_is_new
from .rule import Rule
from .sources import CONFIG, LAYOUT, OFFSETS, STAGES

if TYPE_CHECKING:
    from .facts import Facts

_FIRST = "num_layers_in_first_pipeline_stage"
_LAST = "num_layers_in_last_pipeline_stage"


def _family(name: str, facts: Facts) -> Expr:
    """Look the family's members up by pp and vpp."""
    d, code = facts.dims, SPLITS.index(name)
    chosen = both(equals(d.split, code), facts.by_family)
    if chosen.constant == 0:
        return TRUE
    width = d.vpp.hi + 1
    has_member = [
        int(
            bool(cell >= width and cell % width)
            and split_is_new(code, facts.sizes.layers, cell // width, cell % width)
        )
        for cell in range((d.pp.hi + 1) * width)
    ]
    return implies(chosen, equals(table(d.pp * width + d.vpp, has_member), 1))


def _even(facts: Facts) -> Expr:
    d = facts.dims
    chosen = both(equals(d.split, SPLITS.index("even")), facts.by_family)
    return implies(chosen, divides(d.pp * d.vpp, facts.sizes.layers))


def _size(facts: Facts, name: str) -> Expr:
    return where(facts.given(name), facts.option(name), 0)


def _middle(facts: Facts) -> tuple[Expr, Expr]:
    """Return what is left for the middle stages: layers and stages."""
    first, last = facts.given(_FIRST), facts.given(_LAST)
    taken = total((_size(facts, _FIRST), _size(facts, _LAST)))
    layers = total((facts.sizes.layers, product((taken, -1))))
    return layers, total((facts.dims.pp, product((first, -1)), product((last, -1))))


def chunk_layers(facts: Facts) -> tuple[Expr, ...]:
    """Return the layers of every chunk that differs, rounded down, at least 0."""
    d, layout = facts.dims, facts.structures.layout
    if layout is not None:
        return tuple(as_expr(n) for n in sorted({s.count("t") for s in layout.stages}))
    embedding = facts.on("account_for_embedding_in_pipeline_split")
    loss = facts.on("account_for_loss_in_pipeline_split")
    chunks = d.pp * d.vpp
    even = exact_div(total((facts.sizes.layers, embedding, loss)), chunks)
    first, last = (total((even, product((n, -1)))) for n in (embedding, loss))
    alone = total((first, product((loss, -1))))
    counted = (
        where(equals(chunks, 1), alone, first),
        where(equals(chunks, 1), alone, last),
        where(at_least(chunks, 3), even, 0),
    )
    layers, stages = _middle(facts)
    middle = exact_div(maximum(layers, 0), maximum(stages, 1) * d.vpp)
    sized = (exact_div(maximum(_size(facts, n), 0), d.vpp) for n in (_FIRST, _LAST))
    by_size = (where(facts.sized, n, 0) for n in (middle, *sized))
    by_count = (where(facts.sized, 0, maximum(n, 0)) for n in counted)
    return (*by_size, *by_count)


def _positive(facts: Facts) -> Expr:
    return both(
        *(
            implies(facts.given(n), at_least(facts.option(n), 1))
            for n in (_FIRST, _LAST)
        )
    )


def _ends_by_vpp(facts: Facts) -> Expr:
    sizes = (maximum(_size(facts, n), 0) for n in (_FIRST, _LAST))
    return both(*(divides(facts.dims.vpp, size) for size in sizes))


def _middle_even(facts: Facts) -> Expr:
    layers, stages = _middle(facts)
    none = both(equals(stages, 0), equals(layers, 0))
    chunks = maximum(stages, 1) * facts.dims.vpp
    shared = both(at_least(stages, 1), divides(chunks, maximum(layers, 0)))
    filled = both(shared, negate(equals(layers, 0)))
    odd = less(stages, 0)  # pp = 1 with both sizes: accepted, see size-lost
    return implies(facts.sized, either(none, filled, odd))


def _no_zero_division(facts: Facts) -> Expr:
    _, stages = _middle(facts)
    asked = both(facts.sized, facts.interleaved)
    return implies(asked, negate(equals(stages, 0)))


def _nothing_lost(facts: Facts) -> Expr:
    layers, stages = _middle(facts)
    only_last = equals(_size(facts, _LAST), facts.sizes.layers)
    kept = where(less(stages, 0), only_last, at_least(layers, 0))
    return implies(facts.sized, kept)


def _accounted(facts: Facts) -> Expr:
    d = facts.dims
    counted = total(
        (
            facts.sizes.layers,
            facts.on("account_for_embedding_in_pipeline_split"),
            facts.on("account_for_loss_in_pipeline_split"),
        )
    )
    asked = both(facts.accounted, negate(facts.sized))
    if facts.structures.layout is not None:
        return TRUE
    return implies(asked, divides(d.pp * d.vpp, counted))


SPLIT = (
    Rule(
        id="layers-pp",
        sentence="an even split needs L % (pp * vpp) = 0 (L = {L})",
        source=f"{STAGES}; releases before 0.14 lost the rest (Megatron-LM issues 1303 "
        "and 1304)",
        body=_even,
        where="build",
    ),
    Rule(
        id="layers-balanced",
        sentence="a balanced split needs a layer in every one of the pp * vpp chunks "
        "and is for L that pp * vpp does not divide (L = {L})",
        source=f"{LAYOUT}: written as an explicit layout; where the even split exists "
        "the two are one",
        body=lambda f: _family("balanced", f),
        where="config",
        checker="product",
    ),
    Rule(
        id="layers-uneven",
        sentence="a first-last split needs pp >= 3, first and last sizes above 0 that "
        "vpp divides, equal middle stages, and a shape no other split has (L = {L})",
        source=f"{CONFIG}: written as {_FIRST} and {_LAST}",
        body=lambda f: _family("first-last", f),
        where="config",
        checker="product",
    ),
    Rule(
        id="size-positive",
        sentence="a given size of the first or last stage is at least 1 layer",
        source=f"{CONFIG}: {_FIRST}, {_LAST}",
        body=_positive,
        where="config",
    ),
    Rule(
        id="size-vpp",
        sentence="a given size of the first or last stage divides over vpp",
        source=f"{CONFIG}: {_FIRST}, {_LAST}",
        body=_ends_by_vpp,
        where="config",
    ),
    Rule(
        id="size-middle",
        sentence="the stages between given first and last sizes share the rest of L "
        "evenly, over vpp too; no such stage, no such layer (L = {L})",
        source=f"{CONFIG}: {_FIRST}, {_LAST}; before 0.16 core accepted layers "
        "without a stage and lost them (Megatron-LM issues 1778 and 2718)",
        body=_middle_even,
        where="config",
    ),
    Rule(
        id="size-division",
        sentence="the interleaved schedule with given first or last sizes needs a "
        "stage between them: without one the offset is divided by 0",
        source=OFFSETS,
        body=_no_zero_division,
        where="build",
    ),
    Rule(
        id="size-lost",
        sentence="every layer is built once: with pp = 1 and both sizes only the last "
        "counts, and sizes above L leave the middle less than nothing (L = {L})",
        source=f"{STAGES}: accepted, but {_FIRST} is overwritten or the rest negative",
        body=_nothing_lost,
        where="never",
        checker="layers",
    ),
    Rule(
        id="size-account",
        sentence="given first or last sizes exclude counting embedding or loss as a "
        "layer of the split",
        source=f"{CONFIG}: account_for_embedding_in_pipeline_split",
        body=lambda f: negate(both(f.sized, f.accounted)),
        where="config",
    ),
    Rule(
        id="layers-account",
        sentence="L, plus 1 for the embedding and 1 for the loss where they count, "
        "divides over pp * vpp (L = {L})",
        source=f"{CONFIG}: account_for_loss_in_pipeline_split",
        body=_accounted,
        where="config",
    ),
)
