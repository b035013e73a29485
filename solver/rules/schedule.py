"""Rules of the pipeline schedule: virtual stages, micro-batches, sends."""

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
    maximum,
    modulo,
    negate,
)
from ...models.layout import SCHEDULES
from .rule import Rule
from .sources import INTERLEAVED, LAUNCHER, PARALLEL, STATE
from .sources import SCHEDULES as SOURCE

if TYPE_CHECKING:
    from .facts import Facts

_1F1B = SCHEDULES.index("1f1b")
_INTERLEAVED = SCHEDULES.index("interleaved")
_GROUP = "microbatch_group_size_per_vp_stage"


def _virtual(facts: Facts) -> Expr:
    """Ask for the axis too: V-shaped schedules have no interleaving."""
    several = either(facts.interleaved, at_least(facts.dims.vpp, 2))
    return implies(several, at_least(facts.dims.pp, 2))


def _three_ranks(facts: Facts) -> Expr:
    """The launcher takes a vpp of 1 for none, so this one asks the axis alone."""
    d = facts.dims
    apart = both(at_least(d.vpp, 2), facts.says("overlap_p2p_comm", "off"))
    return implies(apart, at_least(d.pp, 3))


def _plain_sends(facts: Facts) -> Expr:
    plain = both(negate(facts.interleaved), at_least(facts.dims.pp, 2))
    return implies(plain, negate(facts.says("overlap_p2p_comm", "on")))


def _groups_of_micro_batches(facts: Facts) -> Expr:
    d, group = facts.dims, maximum(facts.group, 1)
    whole = divides(group, d.m)
    # A remainder is below its divisor, hence below pp where the group is pp.
    if group is not d.pp:
        whole = either(whole, at_least(modulo(d.m, group), d.pp))
    return implies(both(facts.interleaved, at_least(d.pp, 2)), whole)


def _fills(facts: Facts) -> Expr:
    d = facts.dims
    staged = both(facts.interleaved, at_least(d.pp, 2))
    return implies(staged, at_most(facts.group, d.m))


def _group_holds_ranks(facts: Facts) -> Expr:
    d = facts.dims
    staged = both(facts.interleaved, at_least(d.pp, 2))
    return implies(staged, at_least(facts.group, d.pp))


def _schedule(facts: Facts) -> Expr:
    d = facts.dims
    plain = both(equals(d.schedule, _1F1B), equals(d.vpp, 1))
    return either(plain, both(equals(d.schedule, _INTERLEAVED), at_least(d.vpp, 2)))


def _flush(facts: Facts) -> Expr:
    return implies(facts.on("overlap_p2p_comm_warmup_flush"), facts.p2p_overlap)


SCHEDULE = (
    Rule(
        id="vpp-pp",
        sentence="vpp > 1 needs pp > 1",
        source=f"{STATE}: virtual_pipeline_model_parallel_size, be it 1",
        body=_virtual,
        where="groups",
    ),
    Rule(
        id="vpp-p2p",
        sentence="vpp > 1 without overlapped sends needs pp > 2: two ranks would have "
        "several sends and receives in one batch",
        source=f"{LAUNCHER}: overlap_p2p_comm",
        body=_three_ranks,
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="p2p-overlap",
        sentence="overlapped sends need the interleaved schedule where pp > 1",
        source=f"{SOURCE}, forward_backward_pipelining_without_interleaving; the "
        "launcher switches them off without a word",
        body=_plain_sends,
        where="schedule",
    ),
    Rule(
        id="p2p-flush",
        sentence="overlap in warm-up and flush needs overlapped sends",
        source=f"{PARALLEL}: overlap_p2p_comm_warmup_flush",
        body=_flush,
        where="config",
    ),
    Rule(
        id="vpp-microbatches",
        sentence="interleaved: m % group = 0, or the remainder is at least pp (the "
        "group of micro-batches is pp unless given)",
        source=INTERLEAVED,
        body=_groups_of_micro_batches,
        where="schedule",
    ),
    Rule(
        id="m-ge-pp",
        sentence="interleaved: the group of micro-batches, pp unless given, is at "
        "most m",
        source=f"{INTERLEAVED}: {_GROUP}",
        body=_fills,
        where="schedule",
    ),
    Rule(
        id="group-pp",
        sentence="interleaved: the group of micro-batches is at least pp",
        source=f"{INTERLEAVED}: {_GROUP}",
        body=_group_holds_ranks,
        where="schedule",
    ),
    Rule(
        id="schedule-vpp",
        sentence="1f1b has vpp = 1 and interleaved has vpp > 1",
        source=f"{SOURCE}, get_forward_backward_func",
        body=_schedule,
        where="schedule",
        checker="product",
    ),
    Rule(
        id="pipeline-fills",
        sentence="a pipeline fills with m >= pp micro-batches",
        source="Narayanan et al. 2021 (arXiv 2104.04473), section 2.2: the bubble is "
        "(pp - 1) / m of the ideal time",
        body=lambda f: at_least(f.dims.m, f.dims.pp),
        where="never",
        checker="product",
        kind="advice",
    ),
)
