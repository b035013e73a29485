"""Rules of Hugging Face Accelerate: its mesh of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    Expr,
    at_least,
    both,
    divides,
    either,
    equals,
    implies,
    maximum,
    negate,
    one_of,
    where,
)
from ...models.layout import RECOMPUTE_FULL, SCHEDULES, SHARDINGS
from .divisibility import DIVISIBILITY
from .groups import GROUPS
from .rule import Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from .facts import Facts
    from .rule import Checker, Kind, Where

_HF = "Accelerate 1.15.0 accelerate/"
_MESH = f"{_HF}parallelism_config.py, ParallelismConfig"
_CHECK = f"{_MESH}._validate_accelerator"
PLUGIN_SOURCE = f"{_HF}utils/dataclasses.py, FullyShardedDataParallelPlugin"
_STATE = f"{_HF}state.py, AcceleratorState"
#: Rules whose bodies are shared, with their source and who checks them.
_SHARED: dict[str, tuple[str, Checker]] = {
    "world-dense": (f"{_CHECK}: total_size", "accelerate"),
    "ep-moe": ("this planner: without experts there is no ep", "product"),
    "batch": ("this planner: Accelerate counts the global batch itself", "product"),
    "heads-tp": ("transformers: the plans of tp cut whole heads", "product"),
}


def accelerate_rule(
    id: str,
    sentence: str,
    source: str,
    body: Callable[[Facts], Expr],
    *,
    where: Where = "config",
    checker: Checker = "accelerate",
    kind: Kind = "hard",
) -> Rule:
    """Return a rule of Accelerate."""
    return Rule(
        id=id,
        sentence=sentence,
        source=source,
        body=body,
        where=where,
        checker=checker,
        kind=kind,
        dialect="accelerate",
    )


def _copies() -> tuple[Rule, ...]:
    found = [r for r in (*GROUPS, *DIVISIBILITY) if r.id in _SHARED]
    return tuple(
        accelerate_rule(
            rule.id,
            rule.sentence,
            _SHARED[rule.id][0],
            rule.body,
            where="groups" if rule.id == "world-dense" else "never",
            checker=_SHARED[rule.id][1],
        )
        for rule in found
    )


def launched(facts: Facts, name: str) -> Expr:
    """Whether a run is launched so; left alone, by what is sharded."""
    by_axis = {
        "fsdp2": at_least(facts.dims.sharding, SHARDINGS.index("zero-2")),
        "ddp": equals(facts.dims.sharding, 0),
    }
    stated = facts.says("launch", name)
    if name not in by_axis:
        return stated
    return either(stated, both(facts.says("launch", "auto"), by_axis[name]))


def _replicas(facts: Facts) -> Expr:
    plain = both(facts.says("launch", "auto"), equals(facts.dims.sharding, 0))
    return where(plain, facts.dims.dp, facts.option("dp_replicate_size"))


def _parts(facts: Facts) -> Expr:
    """Whether a replica is cut into several parts."""
    return negate(equals(facts.dims.dp, _replicas(facts)))


def _torch_context(facts: Facts) -> Expr:
    torch = negate(facts.on("ulysses"))
    split = both(torch, at_least(facts.dims.cp, 2))
    return either(split, facts.on("ulysses_and_cp"))


def _replicates(facts: Facts) -> Expr:
    cut = either(at_least(facts.dims.tp, 2), _torch_context(facts))
    several = at_least(_replicas(facts), 2)
    return implies(both(cut, several), _parts(facts))


def _context(facts: Facts) -> Expr:
    return implies(_torch_context(facts), launched(facts, "fsdp2"))


def _sharded(facts: Facts) -> Expr:
    asked = both(launched(facts, "fsdp2"), facts.on("sizes_given"))
    return implies(asked, either(_parts(facts), _torch_context(facts)))


def _old_alone(facts: Facts) -> Expr:
    return negate(both(launched(facts, "fsdp1"), facts.on("sizes_given")))


def _fixed_length(facts: Facts) -> Expr:
    fixed = facts.on("sp_seq_length_fixed")
    return implies(fixed, facts.on("sp_seq_length_given"))


def named(*options: str) -> Callable[[Facts], Expr]:
    """Ask that Accelerate knows what some options say."""
    return lambda facts: both(*(facts.known(name) for name in options))


def _plain(facts: Facts) -> Expr:
    d = facts.dims
    single = both(*(equals(n, 1) for n in (d.pp, d.vpp, d.ep, d.etp)))
    whole = either(equals(d.recompute, 0), equals(d.recompute, RECOMPUTE_FULL))
    order = both(equals(d.schedule, SCHEDULES.index("1f1b")), equals(d.split, 0))
    return both(single, whole, order, equals(d.sp, 0))


def _stages(facts: Facts) -> Expr:
    d = facts.dims
    known = one_of(
        d.sharding, [SHARDINGS.index(n) for n in ("none", "zero-2", "zero-3")]
    )
    return both(known, divides(maximum(_replicas(facts), 1), d.dp))


def _shards_nothing(facts: Facts) -> Expr:
    return implies(launched(facts, "ddp"), negate(_parts(facts)))


MESH = (
    *_copies(),
    accelerate_rule(
        "sizes",
        "every size of the mesh is at least 1",
        f"{_MESH}.__post_init__",
        lambda f: negate(f.on("size_below_one")),
    ),
    accelerate_rule(
        "cp-ulysses",
        "context parallelism and Ulysses sequence parallelism exclude each other",
        f"{_MESH}.__post_init__: cp_size, sp_size",
        lambda f: negate(f.on("ulysses_and_cp")),
    ),
    accelerate_rule(
        "replicas-alone",
        "tp > 1 or cp > 1 with several replicas needs each replica sharded",
        f"{_MESH}.__post_init__: dp_replicate_size, dp_shard_size",
        _replicates,
    ),
    accelerate_rule(
        "backends",
        "the backend of context parallelism is torch, that of Ulysses deepspeed",
        f"{_MESH}.__post_init__: cp_backend, sp_backend",
        named("cp_backend", "sp_backend"),
    ),
    accelerate_rule(
        "cp-strategy",
        "context parallelism gathers or exchanges: allgather or alltoall",
        f"{_HF}utils/dataclasses.py, TorchContextParallelConfig",
        named("cp_comm_strategy"),
    ),
    accelerate_rule(
        "ulysses-length",
        "Ulysses with a fixed length of sequence needs the length",
        f"{_HF}utils/dataclasses.py, DeepSpeedSequenceParallelConfig",
        _fixed_length,
    ),
    accelerate_rule(
        "ulysses-attention",
        "Ulysses runs flash attention or sdpa",
        f"{_HF}utils/dataclasses.py, DeepSpeedSequenceParallelConfig",
        named("sp_attn_implementation"),
    ),
    accelerate_rule(
        "cp-fsdp2",
        "context parallelism needs FSDP2",
        f"{_STATE}: cp_enabled",
        _context,
        where="groups",
    ),
    accelerate_rule(
        "fsdp2-shards",
        "FSDP2 with a mesh of given sizes needs dp_shard_size > 1 or cp > 1",
        f"{_CHECK}: is_fsdp2",
        _sharded,
        where="groups",
    ),
    accelerate_rule(
        "fsdp1-alone",
        "FSDP1 takes no mesh of given sizes",
        f"{_CHECK}: only FSDP2, several devices or DeepSpeed",
        _old_alone,
        where="groups",
    ),
    accelerate_rule(
        "precision",
        "mixed precision is no, fp16, bf16 or fp8",
        f"{_HF}accelerator.py, Accelerator: PrecisionType",
        named("mixed_precision"),
        where="groups",
    ),
    accelerate_rule(
        "axes",
        "pipelines and expert parallelism are no part of Accelerate: pp = vpp = ep = "
        "etp = 1; whole layers are recomputed or none",
        f"{_HF}accelerator.py, Accelerator.pipeline_parallel_rank: not supported",
        _plain,
        where="never",
        checker="product",
    ),
    accelerate_rule(
        "sharding-stage",
        "sharding is none, zero-2 (FSDP without resharding after the forward) or "
        "zero-3, and the replicas divide dp",
        f"{PLUGIN_SOURCE}: reshard_after_forward",
        _stages,
        where="never",
        checker="product",
    ),
    accelerate_rule(
        "shard-ignored",
        "parts of a replica without FSDP are ignored: every rank holds all",
        f"{_HF}accelerator.py, Accelerator.prepare_model: DistributedDataParallel",
        _shards_nothing,
        where="never",
        checker="product",
        kind="advice",
    ),
)
