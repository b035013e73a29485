"""Rules of the pipeline: split of layers, virtual stages, schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    Expr,
    at_least,
    at_most,
    both,
    divides,
    either,
    equals,
    implies,
    table,
)
from ...models.layout import SCHEDULES, SPLITS
from ...models.stages import split_is_new
from .rule import Rule

if TYPE_CHECKING:
    from .rule import Facts

_SCHEDULES = "Megatron-LM megatron/core/pipeline_parallel/schedules.py"
_CONFIG = "Megatron-LM megatron/core/transformer/transformer_config.py, __post_init__"
_1F1B = SCHEDULES.index("1f1b")
_INTERLEAVED = SCHEDULES.index("interleaved")


def _split(name: str, facts: Facts) -> Expr:
    """Look the family's members up by pp and vpp."""
    d, code = facts.dims, SPLITS.index(name)
    width = d.vpp.hi + 1
    has_member = [
        int(
            bool(cell >= width and cell % width)
            and split_is_new(code, facts.layers, cell // width, cell % width)
        )
        for cell in range((d.pp.hi + 1) * width)
    ]
    member = equals(table(d.pp * width + d.vpp, has_member), 1)
    return implies(equals(d.split, code), member)


def _even(facts: Facts) -> Expr:
    d = facts.dims
    even = divides(d.pp * d.vpp, facts.layers)
    return implies(equals(d.split, SPLITS.index("even")), even)


def _balanced(facts: Facts) -> Expr:
    return _split("balanced", facts)


def _first_last(facts: Facts) -> Expr:
    return _split("first-last", facts)


def _virtual(facts: Facts) -> Expr:
    d = facts.dims
    return either(equals(d.vpp, 1), at_least(d.pp, 2))


def _groups_of_micro_batches(facts: Facts) -> Expr:
    d = facts.dims
    return implies(at_least(d.vpp, 2), divides(d.pp, d.m))


def _fills(facts: Facts) -> Expr:
    d = facts.dims
    return implies(at_least(d.vpp, 2), at_most(d.pp, d.m))


def _schedule(facts: Facts) -> Expr:
    d = facts.dims
    plain = both(equals(d.schedule, _1F1B), equals(d.vpp, 1))
    return either(plain, both(equals(d.schedule, _INTERLEAVED), at_least(d.vpp, 2)))


PIPELINE = (
    Rule(
        id="layers-pp",
        sentence="an even split needs L % (pp * vpp) = 0 (L = {L})",
        source=f"{_CONFIG}; core/transformer/transformer_block.py, "
        "get_num_layers_to_build",
        body=_even,
        where="build",
    ),
    Rule(
        id="layers-balanced",
        sentence="a balanced split needs a layer in every one of the pp * vpp chunks "
        "and is for L that pp * vpp does not divide (L = {L})",
        source="Megatron-LM megatron/core/transformer/"
        "pipeline_parallel_layer_layout.py: written as an explicit layout; where "
        "the even split exists the two are one",
        body=_balanced,
        where="config",
    ),
    Rule(
        id="layers-uneven",
        sentence="a first-last split needs pp >= 3, first and last sizes above 0 that "
        "vpp divides, equal middle stages, and a shape no other split has (L = {L})",
        source=f"{_CONFIG}: num_layers_in_first_pipeline_stage, "
        "num_layers_in_last_pipeline_stage",
        body=_first_last,
        where="config",
    ),
    Rule(
        id="vpp-pp",
        sentence="vpp > 1 needs pp > 1",
        source="Megatron-LM megatron/core/parallel_state.py, "
        "initialize_model_parallel; with P2P overlap off pp > 2 (arguments.py), "
        "overlap is on here",
        body=_virtual,
        where="groups",
    ),
    Rule(
        id="vpp-microbatches",
        sentence="interleaved: m % pp = 0 (the micro-batch group is pp, and a "
        "remainder must be at least pp)",
        source=f"{_SCHEDULES}, get_schedule_table and "
        "forward_backward_pipelining_with_interleaving",
        body=_groups_of_micro_batches,
        where="schedule",
    ),
    Rule(
        id="m-ge-pp",
        sentence="interleaved: the micro-batch group pp is at most m",
        source=f"{_SCHEDULES}, forward_backward_pipelining_with_interleaving",
        body=_fills,
        where="schedule",
    ),
    Rule(
        id="schedule-vpp",
        sentence="1f1b has vpp = 1 and interleaved has vpp > 1",
        source="Megatron-LM megatron/core/pipeline_parallel/schedules.py, "
        "get_forward_backward_func",
        body=_schedule,
        where="schedule",
    ),
)
