"""Rules of DeepSpeed: grids of ranks, batch, precision, pipeline."""

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
    equals,
    implies,
    negate,
)
from ...models.layout import RECOMPUTE_FULL, SCHEDULES, SPLITS
from .divisibility import DIVISIBILITY
from .groups import GROUPS
from .rule import Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from .facts import Facts
    from .rule import Checker, Kind, Where

DS = "DeepSpeed 0.19.8 deepspeed/"
_CONFIG = f"{DS}runtime/config.py, DeepSpeedConfig"
_ENGINE = f"{DS}runtime/engine.py, DeepSpeedEngine"
_FOLDING = f"{DS}module_inject/auto_ep_folding.py"
_GRID = f"{DS}runtime/pipe/topology.py, PipelineParallelGrid"
_ULYSSES = f"{DS}runtime/sequence_parallel/ulysses_sp.py"
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
    "batch": (f"{_CONFIG}._batch_assertion", "config"),
}


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
    found = [r for r in (*GROUPS, *DIVISIBILITY) if r.id in _SHARED]
    return tuple(
        deepspeed_rule(
            rule.id,
            rule.sentence,
            _SHARED[rule.id][0],
            rule.body,
            where=_SHARED[rule.id][1],
            checker="product" if rule.id == "ep-moe" else "deepspeed",
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


def _precision(facts: Facts) -> Expr:
    return negate(both(facts.on("fp16.enabled"), facts.on("bf16.enabled")))


def _loss_scale(facts: Facts) -> Expr:
    positive = both(
        at_least(facts.option("fp16.loss_scale_window"), 1),
        at_least(facts.option("fp16.min_loss_scale"), 1),
    )
    dynamic = both(facts.on("fp16.enabled"), facts.on("fp16.dynamic_loss_scale"))
    return both(facts.on("fp16.loss_scale_known"), implies(dynamic, positive))


def model_type(facts: Facts) -> dict[str, Expr]:
    """Return for each number format whether the model is in it; FP16 goes first."""
    half, brain = facts.on("fp16.enabled"), facts.on("bf16.enabled")
    return {
        "fp16": half,
        "bf16": both(negate(half), brain),
        "fp32": both(negate(half), negate(brain)),
    }


def accumulates_in(facts: Facts, name: str) -> Expr:
    """Whether gradients are accumulated in a number format."""
    option = "data_types.grad_accum_dtype"
    by_model = both(facts.says(option, "auto"), model_type(facts)[name])
    return either(facts.says(option, name), by_model)


def _parameters(facts: Facts) -> Expr:
    option = "data_types.param_dtype"
    same = (both(facts.says(option, n), is_) for n, is_ in model_type(facts).items())
    return either(facts.says(option, "auto"), *same)


def _accumulation(facts: Facts) -> Expr:
    same = (
        both(accumulates_in(facts, name), is_)
        for name, is_ in model_type(facts).items()
    )
    return either(at_least(facts.dims.sharding, 1), *same)


def _managed(facts: Facts) -> Expr:
    d = facts.dims
    overlaps = facts.says("zero_optimization.overlap_comm", "on")
    # Left alone, overlap is on with ZeRO-3, which shards gradients too.
    held = both(
        either(at_least(d.sharding, 2), negate(overlaps)),
        equals(d.pp, 1),
        negate(facts.on("compile.deepcompile")),
    )
    return either(facts.on("managed_gradient_accumulation"), held)


def _schedule(facts: Facts) -> Expr:
    d = facts.dims
    return both(equals(d.schedule, SCHEDULES.index("1f1b")), equals(d.vpp, 1))


def _writing(facts: Facts) -> Expr:
    d = facts.dims
    whole = either(equals(d.recompute, 0), equals(d.recompute, RECOMPUTE_FULL))
    return both(whole, equals(d.sp, 0))


def _split(facts: Facts) -> Expr:
    d = facts.dims
    even = both(
        equals(d.split, SPLITS.index("even")), divides(d.pp, facts.sizes.layers)
    )
    return either(even, both(equals(d.split, SPLITS.index("balanced")), TRUE))


GRIDS = (
    *_copies(),
    deepspeed_rule(
        "ep-tp",
        "experts are not cut by tensor parallelism (etp = 1), and expert parallelism "
        "needs tp = 1 where another library brings the tensor-parallel ranks",
        f"{_ENGINE}._configure_expert_parallel; {_FOLDING}, validate_folding_global",
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
        f"{_CONFIG}: sequence_parallel_size is read without an mpu only",
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
        "layers-pp",
        "an even split needs L % pp = 0 (L = {L}); parts of whole layers otherwise are "
        "balanced",
        f"{DS}runtime/pipe/module.py, PipelineModule._partition_layers: uniform",
        _split,
        where="never",
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
        "whole layers are recomputed or none, and norms are not cut along the sequence",
        f"{DS}runtime/activation_checkpointing/checkpointing.py",
        _writing,
        where="never",
        checker="product",
    ),
)

PRECISIONS = (
    deepspeed_rule(
        "fp16-bf16",
        "fp16 and bf16 exclude each other",
        f"{_CONFIG}._initialize_params",
        _precision,
    ),
    deepspeed_rule(
        "loss-scale",
        "the loss scale is a number of at least 0, and a dynamic one has a window and "
        "a least scale above 0",
        f"{DS}runtime/precision_config.py, DeepSpeedFP16Config",
        _loss_scale,
    ),
    deepspeed_rule(
        "parameter-type",
        "the type of the parameters, where given, is that of fp16 or bf16, fp32 "
        "without them",
        f"{_ENGINE}._assert_valid_mixed_precision_config",
        _parameters,
        where="build",
    ),
    deepspeed_rule(
        "accumulation-type",
        "without ZeRO, gradients are accumulated in the type of the model",
        f"{_ENGINE}._do_optimizer_sanity_check: unsupported mix",
        _accumulation,
        where="build",
    ),
    deepspeed_rule(
        "managed-accumulation",
        "accumulation that the caller manages needs pp = 1, no DeepCompile, and ZeRO "
        "of at least stage 2 to overlap communication",
        f"{_ENGINE}._do_sanity_check: managed_gradient_accumulation",
        _managed,
        where="build",
    ),
    deepspeed_rule(
        "communication-type",
        "the type of communication is fp16, bf16 or fp32",
        f"{_CONFIG}: communication_data_type",
        lambda f: f.known("communication_data_type"),
    ),
    deepspeed_rule(
        "removed-keys",
        "no key is given that this release has removed: elasticity, nebula, amp, "
        "mics_shard_size and more",
        f"{_CONFIG}: _reject_removed_config_keys",
        lambda f: negate(f.on("removed_key")),
    ),
)
