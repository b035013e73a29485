"""Rules of optimizer and parameter sharding and of its overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    FALSE,
    TRUE,
    Expr,
    at_most,
    both,
    either,
    equals,
    implies,
    less,
    negate,
)
from ...models.layout import SHARDINGS
from .rule import Rule
from .sources import LAUNCHER, OPTIMIZER

if TYPE_CHECKING:
    from collections.abc import Callable

    from .facts import Facts

_FSDP2 = "use_torch_fsdp2"
_FSDP = "use_megatron_fsdp"
_STEP = "overlap_param_gather_with_optimizer_step"


def _stage(facts: Facts) -> Expr:
    plain = at_most(facts.dims.sharding, SHARDINGS.index("zero-1"))
    return either(plain, facts.on(_FSDP), facts.on(_FSDP2))


def _under_fsdp2(law: Callable[[Facts], Expr]) -> Callable[[Facts], Expr]:
    return lambda facts: implies(facts.on(_FSDP2), law(facts))


def _gather(facts: Facts) -> Expr:
    sharded = either(facts.distributed_optimizer, facts.on(_FSDP))
    return implies(facts.on("overlap_param_gather"), sharded)


def _gather_reduced(facts: Facts) -> Expr:
    return implies(facts.on("overlap_param_gather"), facts.on("overlap_grad_reduce"))


def _gather_step(facts: Facts) -> Expr:
    needs = both(
        facts.distributed_optimizer,
        facts.on("overlap_param_gather"),
        negate(less(facts.dims.vpp, 2)),
    )
    return implies(facts.on(_STEP), needs)


def _offload(facts: Facts) -> Expr:
    aware = facts.on("use_precision_aware_optimizer")
    return implies(facts.on("optimizer_cpu_offload"), aware)


def _offload_fp8(facts: Facts) -> Expr:
    gathered = both(facts.on("optimizer_cpu_offload"), facts.on("fp8_param_gather"))
    return implies(gathered, facts.says("fp8_recipe", "delayed"))


def _aware(facts: Facts) -> Expr:
    aware = facts.on("use_precision_aware_optimizer")
    return implies(aware, facts.distributed_optimizer)


def _connections(facts: Facts) -> Expr:
    d, name = facts.dims, "cuda_device_max_connections"
    single = both(equals(d.tp, 1), equals(d.cp, 1))
    overlapped = facts.on("overlap_moe_expert_parallel_comm")
    free = either(facts.on(_FSDP2), facts.on(_FSDP), overlapped, single)
    return either(free, facts.says(name, "auto", "1"))


def _many_connections(facts: Facts) -> Expr:
    fsdp = either(facts.on(_FSDP2), facts.on(_FSDP))
    return implies(fsdp, negate(facts.says("cuda_device_max_connections", "1")))


def _fsdp2(suffix: str, needs: str, law: Callable[[Facts], Expr]) -> Rule:
    return Rule(
        id=f"fsdp2{suffix}",
        sentence=f"torch FSDP2 needs {needs}",
        source=f"{LAUNCHER}: use_torch_fsdp2",
        body=_under_fsdp2(law),
        where="launcher only",
        checker="launcher",
    )


FSDP2 = (
    _fsdp2("", "pp = 1", lambda f: equals(f.dims.pp, 1)),
    _fsdp2("-ep", "ep = 1", lambda f: equals(f.dims.ep, 1)),
    _fsdp2(
        "-optimizer",
        "the distributed optimizer off: sharding none",
        lambda f: negate(f.distributed_optimizer),
    ),
    _fsdp2(
        "-fusion",
        "gradient accumulation that is not fused",
        lambda f: negate(f.on("gradient_accumulation_fusion")),
    ),
    _fsdp2(
        "-tied",
        "separate input and output embeddings",
        lambda f: FALSE if f.sizes.tied else TRUE,
    ),
    _fsdp2(
        "-fp16",
        "a precision other than fp16",
        lambda f: negate(f.says("precision", "fp16")),
    ),
)

SHARDING = (
    Rule(
        id="sharding-stage",
        sentence="optimizer sharding is none or zero-1 (the distributed optimizer), "
        "unless FSDP of either kind shards gradients and parameters too",
        source="megatron-core 0.16.1 megatron/core/distributed/"
        "distributed_data_parallel_config.py: use_distributed_optimizer, "
        "data_parallel_sharding_strategy",
        body=_stage,
        where="config",
        checker="product",
    ),
    *FSDP2,
    Rule(
        id="param-gather",
        sentence="overlapping the gather of parameters needs the distributed "
        "optimizer: sharding of at least zero-1",
        source=f"{LAUNCHER}: overlap_param_gather",
        body=_gather,
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="param-gather-reduce",
        sentence="overlapping the gather of parameters needs overlapping the "
        "reduction of gradients",
        source=f"{LAUNCHER}: overlap_param_gather",
        body=_gather_reduced,
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="param-gather-step",
        sentence="overlapping the gather of parameters with the optimizer step needs "
        "the distributed optimizer, the overlapped gather and vpp > 1",
        source=f"{LAUNCHER}: {_STEP}",
        body=_gather_step,
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="precision-aware",
        sentence="the precision-aware optimizer needs the distributed optimizer: "
        "sharding of at least zero-1",
        source=f"{OPTIMIZER}: use_precision_aware_optimizer",
        body=_aware,
        where="config",
    ),
    Rule(
        id="optimizer-offload",
        sentence="offloading the optimizer needs the precision-aware optimizer",
        source=f"{LAUNCHER}: optimizer_cpu_offload",
        body=_offload,
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="optimizer-offload-fp8",
        sentence="offloading the optimizer with a gather of FP8 parameters needs "
        "delayed scaling",
        source=f"{LAUNCHER}: optimizer_cpu_offload",
        body=_offload_fp8,
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="max-connections",
        sentence="before Blackwell, tp > 1 or cp > 1 needs "
        "CUDA_DEVICE_MAX_CONNECTIONS=1, but for FSDP and the overlap of the experts' "
        "all-to-all",
        source=f"{LAUNCHER}: CUDA_DEVICE_MAX_CONNECTIONS",
        body=_connections,
        where="launcher only",
        checker="environment",
    ),
    Rule(
        id="megatron-fsdp",
        sentence="FSDP of either kind needs CUDA_DEVICE_MAX_CONNECTIONS above 1",
        source=f"{LAUNCHER}: CUDA_DEVICE_MAX_CONNECTIONS",
        body=_many_connections,
        where="launcher only",
        checker="environment",
    ),
)
