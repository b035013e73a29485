"""Rules of DeepSpeed: grids of ranks, batch, pipeline."""

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
    less,
)
from ...models.layout import RECOMPUTE_FULL, SCHEDULES, SPLITS
from .divisibility import DIVISIBILITY
from .groups import GROUPS
from .rule import Rule
from .stages import SPLIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from .facts import Facts
    from .rule import Checker, Kind, Where

DS = "DeepSpeed 0.19.8 deepspeed/"
CONFIG = f"{DS}runtime/config.py, DeepSpeedConfig"
ENGINE = f"{DS}runtime/engine.py, DeepSpeedEngine"
_FOLDING = f"{DS}module_inject/auto_ep_folding.py"
_GRID = f"{DS}runtime/pipe/topology.py, PipelineParallelGrid"
_ULYSSES = f"{DS}runtime/sequence_parallel/ulysses_sp.py"
_PARTS = f"{DS}runtime/pipe/module.py, PipelineModule._partition_layers"
#: Rules whose bodies DeepSpeed shares, with the place where it says so.
_SHARED: dict[str, tuple[str, Where]] = {
    "world-dense": (f"{_GRID}: _is_grid_valid", "groups"),
    "world-expert": (f"{_FOLDING}, build_folding_spec", "build"),
    "ep-moe": (
        f"{DS}module_inject/auto_ep.py: experts are found in the model",
        "never",
    ),
    "experts-ep": (
        f"{DS}module_inject/auto_ep_config.py, validate_autoep_post_detection",
        "groups",
    ),
    "batch": (f"{CONFIG}._batch_assertion", "config"),
    "layers-pp": (f"{_PARTS}: uniform", "never"),
    "layers-balanced": (f"{_PARTS}: of whole layers", "never"),
}
#: Of these, the ones that are this planner's own writing.
_OWN = ("ep-moe", "layers-pp", "layers-balanced")


def deepspeed_rule(
    id: str,
    sentence: str,
    source: str,
    body: Callable[[Facts], Expr],
    *,
    where: Where = "config",
    checker: Checker = "deepspeed",
    kind: Kind = "hard",
) -> Rule:
    """Return a rule of DeepSpeed."""
    return Rule(
        id=id,
        sentence=sentence,
        source=source,
        body=body,
        where=where,
        checker=checker,
        kind=kind,
        dialect="deepspeed",
    )


def _copies() -> tuple[Rule, ...]:
    """Take over the rules whose sentences and bodies are DeepSpeed's too."""
    found = [r for r in (*GROUPS, *DIVISIBILITY, *SPLIT) if r.id in _SHARED]
    return tuple(
        deepspeed_rule(
            rule.id,
            rule.sentence,
            _SHARED[rule.id][0],
            rule.body,
            where=_SHARED[rule.id][1],
            checker="product" if rule.id in _OWN else "deepspeed",
        )
        for rule in found
    )


def _expert_tensor(facts: Facts) -> Expr:
    d, on = facts.dims, facts.on("expert_parallel.enabled")
    asked = either(on, at_least(d.ep, 2))
    return both(equals(d.etp, 1), implies(asked, equals(d.tp, 1)))


def _heads(facts: Facts) -> Expr:
    cp, sizes = facts.dims.cp, facts.sizes
    shared = (either(divides(cp, g), divides(g, cp)) for g in sizes.kv_heads)
    return both(*(divides(cp, h) for h in sizes.heads), *shared)


def _sequence_alone(facts: Facts) -> Expr:
    d = facts.dims
    return either(equals(d.cp, 1), both(equals(d.tp, 1), equals(d.pp, 1)))


def _sequence(facts: Facts) -> Expr:
    return divides(facts.dims.cp, facts.sizes.seq_len)


def _schedule(facts: Facts) -> Expr:
    d = facts.dims
    return both(equals(d.schedule, SCHEDULES.index("1f1b")), equals(d.vpp, 1))


def _writing(facts: Facts) -> Expr:
    d = facts.dims
    whole = either(equals(d.recompute, 0), equals(d.recompute, RECOMPUTE_FULL))
    known = less(d.split, SPLITS.index("first-last"))
    return both(whole, equals(d.sp, 0), known)


GRIDS = (
    *_copies(),
    deepspeed_rule(
        "ep-tp",
        "experts are not cut by tensor parallelism (etp = 1), and expert parallelism "
        "needs tp = 1 where another library brings the tensor-parallel ranks",
        f"{ENGINE}._configure_expert_parallel; {_FOLDING}, validate_folding_global",
        _expert_tensor,
        where="build",
    ),
    deepspeed_rule(
        "heads-cp",
        "sequence parallelism (Ulysses) divides heads over cp, and key/value heads "
        "too unless cp is a multiple of them (H = {H}, KV = {KV})",
        f"{_ULYSSES}, UlyssesSPAttentionHF",
        _heads,
        where="groups",
    ),
    deepspeed_rule(
        "cp-alone",
        "sequence parallelism (cp > 1) needs tp = 1 and pp = 1: with them the batch "
        "counts the sequence-parallel ranks as data-parallel ones",
        f"{CONFIG}: sequence_parallel_size is read without an mpu only",
        _sequence_alone,
        where="build",
    ),
    deepspeed_rule(
        "seq-cp",
        "sequence parallelism divides the sequence: S % cp = 0 (S = {S})",
        f"{_ULYSSES}, UlyssesSPDataLoaderAdapter.refill: seq_length % sp_world_size",
        _sequence,
        where="first forward",
    ),
    deepspeed_rule(
        "schedule-vpp",
        "the pipeline runs 1f1b with vpp = 1",
        f"{DS}runtime/pipe/schedule.py, TrainSchedule",
        _schedule,
        where="schedule",
        checker="product",
    ),
    deepspeed_rule(
        "layers-filled",
        "a pipeline has a layer for every stage: those beyond L hold nothing (L = {L})",
        f"{DS}runtime/pipe/module.py, PipelineModule: accepted",
        lambda f: at_most(f.dims.pp, f.sizes.layers),
        where="never",
        checker="product",
        kind="advice",
    ),
    deepspeed_rule(
        "recompute-whole",
        "whole layers are recomputed or none, norms are not cut along the sequence, "
        "and stages are even or balanced",
        f"{DS}runtime/activation_checkpointing/checkpointing.py",
        _writing,
        where="never",
        checker="product",
    ),
)
