"""Rules of schedules that Megatron itself has not: zero bubble, V shapes, DualPipe."""

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
    negate,
    one_of,
)
from ...models.layout import SCHEDULES
from .rule import Rule

if TYPE_CHECKING:
    from .facts import Facts

_PRIMUS = "AMD-AGI/Primus fd1eeab "
_DUALPIPE = "deepseek-ai/DualPipe dualpipe/"


def _schedule(facts: Facts, *names: str) -> Expr:
    return one_of(facts.dims.schedule, [SCHEDULES.index(name) for name in names])


def _chunks(facts: Facts, chunks: int, *names: str) -> Expr:
    return both(_schedule(facts, *names), equals(facts.dims.vpp, chunks))


def _primus_schedule(facts: Facts) -> Expr:
    many = both(_schedule(facts, "interleaved"), at_least(facts.dims.vpp, 2))
    single = _chunks(facts, 1, "1f1b", "zb-h1", "zb-h2")
    return either(single, many, _chunks(facts, 2, "zbv", "v-half", "v-min"))


def _no_recompute(facts: Facts) -> Expr:
    split = _schedule(facts, "zb-h1", "zb-h2", "zbv", "v-half", "v-min")
    return negate(both(split, facts.recomputes))


def _stage(facts: Facts) -> Expr:
    stage = facts.option("turbo_sync_free_moe_stage")
    deep = implies(at_least(stage, 2), facts.on("use_turbo_deepep"))
    return both(at_least(stage, 0), at_most(stage, 3), deep)


def _turbo_shared(facts: Facts) -> Expr:
    overlap = facts.on("moe_shared_expert_overlap")
    return negate(both(facts.on("use_turbo_deepep"), overlap))


def _dualpipe_schedule(facts: Facts) -> Expr:
    return either(_chunks(facts, 1, "dualpipe"), _chunks(facts, 2, "dualpipev"))


def _dualpipe(facts: Facts) -> Expr:
    pp, m = facts.dims.pp, facts.dims.m
    even = both(divides(2, pp), divides(2, m))
    enough = at_least(m, 2 * pp)
    return both(enough, implies(_schedule(facts, "dualpipe"), even))


PRIMUS = (
    Rule(
        id="schedule-vpp",
        sentence="1f1b, zb-h1 and zb-h2 have vpp = 1, interleaved vpp > 1, zbv, "
        "v-half and v-min vpp = 2",
        source=f"{_PRIMUS}primus/core/pipeline_parallel/scheduler/algorithms",
        body=_primus_schedule,
        where="schedule",
        checker="primus",
        dialect="primus",
    ),
    Rule(
        id="zb-recompute",
        sentence="schedules that defer the weight gradient exclude recomputation: "
        "what it recomputed stays pinned",
        source=f"{_PRIMUS}primus/core/pipeline_parallel/handler/wgrad_handler.py",
        body=_no_recompute,
        where="schedule",
        checker="primus",
        dialect="primus",
    ),
    Rule(
        id="sync-free",
        sentence="the stage of sync-free MoE is 0 to 3; from 2 on it switches DeepEP "
        "on without a word",
        source=f"{_PRIMUS}primus/backends/megatron: _get_sync_free_moe_options",
        body=_stage,
        where="launcher only",
        checker="primus",
        dialect="primus",
    ),
    Rule(
        id="turbo-deepep-shared",
        sentence="DeepEP of Primus-Turbo excludes overlapping the shared experts",
        source=f"{_PRIMUS}primus/backends/megatron: validate_args_on_rocm",
        body=_turbo_shared,
        where="launcher only",
        checker="primus",
        dialect="primus",
    ),
)

SEGMENTS = Rule(
    id="bad-segments",
    sentence="memory near the device's limit needs expandable segments of the "
    "allocator: a shipped recipe fits with them only",
    source="Primus pull request 1011: PYTORCH_CUDA_ALLOC_CONF",
    body=lambda f: f.on("expandable_segments"),
    where="never",
    checker="environment",
    kind="known-bad",
    dialect="primus",
)

DUALPIPE = (
    Rule(
        id="schedule-vpp",
        sentence="dualpipe has vpp = 1, two copies of its stages, and dualpipev vpp = "
        "2, in the shape of a V",
        source=f"{_DUALPIPE}dualpipe.py, dualpipev.py",
        body=_dualpipe_schedule,
        where="schedule",
        checker="product",
        dialect="dualpipe",
    ),
    Rule(
        id="dualpipe",
        sentence="dualpipe needs pp even, m even and m >= 2 * pp, dualpipev the last "
        "alone",
        source=f"{_DUALPIPE}dualpipe.py, DualPipe.step; dualpipev.py, DualPipeV.step",
        body=_dualpipe,
        where="schedule",
        checker="dualpipe",
        dialect="dualpipe",
    ),
)
