"""Rules of Hugging Face Accelerate: its mesh of ranks and its FSDP plugin."""

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
_PLUGIN = f"{_HF}utils/dataclasses.py, FullyShardedDataParallelPlugin"
_STATE = f"{_HF}state.py, AcceleratorState"
#: Rules whose bodies are shared, with their source and who checks them.
_SHARED: dict[str, tuple[str, Checker]] = {
    "world-dense": (f"{_CHECK}: total_size", "accelerate"),
    "ep-moe": ("this planner: without experts there is no ep", "product"),
    "batch": ("this planner: Accelerate counts the global batch itself", "product"),
    "heads-tp": ("transformers: the plans of tp cut whole heads", "product"),
}


def _rule(
    id: str,
    sentence: str,
    source: str,
    body: Callable[[Facts], Expr],
    *,
    where: Where = "config",
    checker: Checker = "accelerate",
    kind: Kind = "hard",
) -> Rule:
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
        _rule(
            rule.id,
            rule.sentence,
            _SHARED[rule.id][0],
            rule.body,
            where="groups" if rule.id == "world-dense" else "never",
            checker=_SHARED[rule.id][1],
        )
        for rule in found
    )


def _launched(facts: Facts, name: str) -> Expr:
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
    return implies(_torch_context(facts), _launched(facts, "fsdp2"))


def _sharded(facts: Facts) -> Expr:
    asked = both(_launched(facts, "fsdp2"), facts.on("sizes_given"))
    return implies(asked, either(_parts(facts), _torch_context(facts)))


def _old_alone(facts: Facts) -> Expr:
    return negate(both(_launched(facts, "fsdp1"), facts.on("sizes_given")))


def _fixed_length(facts: Facts) -> Expr:
    fixed = facts.on("sp_seq_length_fixed")
    return implies(fixed, facts.on("sp_seq_length_given"))


def _names(*options: str) -> Callable[[Facts], Expr]:
    return lambda facts: both(*(facts.known(name) for name in options))


def _reshard(facts: Facts) -> Expr:
    name = "fsdp_reshard_after_forward"
    strategy = facts.says("fsdp_sharding_strategy", "auto")
    new = either(facts.says(name, "flag"), both(facts.says(name, "auto"), strategy))
    old = facts.says(name, "auto", "strategy")
    return both(
        implies(_launched(facts, "fsdp2"), new),
        implies(_launched(facts, "fsdp1"), old),
    )


def _old_strategy(facts: Facts) -> Expr:
    known = facts.known("fsdp_sharding_strategy")
    return implies(_launched(facts, "fsdp1"), known)


def _only(version: str, option: str, *labels: str) -> Callable[[Facts], Expr]:
    """Keep an option of one version of FSDP to some labels."""
    return lambda facts: implies(_launched(facts, version), facts.says(option, *labels))


def _checkpoint_offload(facts: Facts) -> Expr:
    asked = facts.on("fsdp_activation_checkpointing_offload")
    kept = facts.on("fsdp_activation_checkpointing")
    return implies(asked, both(kept, negate(_launched(facts, "fsdp1"))))


def _offload(facts: Facts) -> Expr:
    new, old = (
        implies(_launched(facts, v), facts.says("fsdp_cpu_offload", "flag", v))
        for v in ("fsdp2", "fsdp1")
    )
    return both(new, old)


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
    return implies(_launched(facts, "ddp"), negate(_parts(facts)))


MESH = (
    *_copies(),
    _rule(
        "sizes",
        "every size of the mesh is at least 1",
        f"{_MESH}.__post_init__",
        lambda f: negate(f.on("size_below_one")),
    ),
    _rule(
        "cp-ulysses",
        "context parallelism and Ulysses sequence parallelism exclude each other",
        f"{_MESH}.__post_init__: cp_size, sp_size",
        lambda f: negate(f.on("ulysses_and_cp")),
    ),
    _rule(
        "replicas-alone",
        "tp > 1 or cp > 1 with several replicas needs each replica sharded",
        f"{_MESH}.__post_init__: dp_replicate_size, dp_shard_size",
        _replicates,
    ),
    _rule(
        "backends",
        "the backend of context parallelism is torch, that of Ulysses deepspeed",
        f"{_MESH}.__post_init__: cp_backend, sp_backend",
        _names("cp_backend", "sp_backend"),
    ),
    _rule(
        "cp-strategy",
        "context parallelism gathers or exchanges: allgather or alltoall",
        f"{_HF}utils/dataclasses.py, TorchContextParallelConfig",
        _names("cp_comm_strategy"),
    ),
    _rule(
        "ulysses-length",
        "Ulysses with a fixed length of sequence needs the length",
        f"{_HF}utils/dataclasses.py, DeepSpeedSequenceParallelConfig",
        _fixed_length,
    ),
    _rule(
        "ulysses-attention",
        "Ulysses runs flash attention or sdpa",
        f"{_HF}utils/dataclasses.py, DeepSpeedSequenceParallelConfig",
        _names("sp_attn_implementation"),
    ),
    _rule(
        "cp-fsdp2",
        "context parallelism needs FSDP2",
        f"{_STATE}: cp_enabled",
        _context,
        where="groups",
    ),
    _rule(
        "fsdp2-shards",
        "FSDP2 with a mesh of given sizes needs dp_shard_size > 1 or cp > 1",
        f"{_CHECK}: is_fsdp2",
        _sharded,
        where="groups",
    ),
    _rule(
        "fsdp1-alone",
        "FSDP1 takes no mesh of given sizes",
        f"{_CHECK}: only FSDP2, several devices or DeepSpeed",
        _old_alone,
        where="groups",
    ),
    _rule(
        "precision",
        "mixed precision is no, fp16, bf16 or fp8",
        f"{_HF}accelerator.py, Accelerator: PrecisionType",
        _names("mixed_precision"),
    ),
    _rule(
        "axes",
        "pipelines and expert parallelism are no part of Accelerate: pp = vpp = ep = "
        "etp = 1; whole layers are recomputed or none",
        f"{_HF}accelerator.py, Accelerator.pipeline_parallel_rank: not supported",
        _plain,
        where="never",
        checker="product",
    ),
    _rule(
        "sharding-stage",
        "sharding is none, zero-2 (FSDP without resharding after the forward) or "
        "zero-3, and the replicas divide dp",
        f"{_PLUGIN}: reshard_after_forward",
        _stages,
        where="never",
        checker="product",
    ),
    _rule(
        "shard-ignored",
        "parts of a replica without FSDP are ignored: every rank holds all",
        f"{_HF}accelerator.py, Accelerator.prepare_model: DistributedDataParallel",
        _shards_nothing,
        where="never",
        checker="product",
        kind="advice",
    ),
)

PLUGIN = (
    _rule(
        "fsdp-reshard",
        "FSDP2 is told by a flag whether it reshards after the forward, and by no "
        "strategy alone; FSDP1 by the name of a strategy",
        f"{_PLUGIN}: reshard_after_forward",
        _reshard,
    ),
    _rule(
        "fsdp-strategy",
        "FSDP1 has the strategies FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD "
        "and HYBRID_SHARD_ZERO2",
        f"{_PLUGIN}: sharding_strategy",
        _old_strategy,
    ),
    _rule(
        "fsdp-names",
        "the type of state dict, the policy of wrapping, the prefetch of the backward "
        "and the mixed precision of FSDP have names that it knows",
        f"{_PLUGIN}: set_state_dict_type, auto_wrap_policy, set_mixed_precision",
        _names(
            "fsdp_state_dict_type",
            "fsdp_auto_wrap_policy",
            "fsdp_backward_prefetch",
            "fsdp_mixed_precision",
        ),
    ),
    _rule(
        "fsdp2-state-dict",
        "FSDP2 has no local state dict",
        f"{_PLUGIN}.set_state_dict_type",
        _only(
            "fsdp2",
            "fsdp_state_dict_type",
            "auto",
            "full_state_dict",
            "sharded_state_dict",
        ),
    ),
    _rule(
        "fsdp2-forward-prefetch",
        "FSDP2 has no prefetch of the forward, on or off",
        f"{_PLUGIN}: forward_prefetch",
        _only("fsdp2", "fsdp_forward_prefetch", "auto"),
    ),
    _rule(
        "fsdp-checkpoint-offload",
        "offload of checkpointed activations needs checkpointing and FSDP2",
        f"{_PLUGIN}: activation_checkpointing_offload",
        _checkpoint_offload,
    ),
    _rule(
        "fsdp-offload",
        "offload to the host is a flag, or the policy of FSDP's own version",
        f"{_PLUGIN}.validate_cpu_offload",
        _offload,
    ),
)
ACCELERATE = (*MESH, *PLUGIN)
