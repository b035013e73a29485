"""Rules of Accelerate's plugin of fully sharded data parallelism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import Expr, both, either, implies, negate
from .accelerate import PLUGIN_SOURCE, accelerate_rule, launched, named

if TYPE_CHECKING:
    from .facts import Facts


def _reshard(facts: Facts) -> Expr:
    name = "fsdp_reshard_after_forward"
    strategy = facts.says("fsdp_sharding_strategy", "auto")
    new = either(facts.says(name, "flag"), both(facts.says(name, "auto"), strategy))
    old = facts.says(name, "auto", "strategy")
    return both(
        implies(launched(facts, "fsdp2"), new),
        implies(launched(facts, "fsdp1"), old),
    )


def _old_strategy(facts: Facts) -> Expr:
    known = facts.known("fsdp_sharding_strategy")
    return implies(launched(facts, "fsdp1"), known)


def _local_state(facts: Facts) -> Expr:
    local = facts.says("fsdp_state_dict_type", "local_state_dict")
    return negate(both(launched(facts, "fsdp2"), local))


def _prefetch(facts: Facts) -> Expr:
    alone = facts.says("fsdp_forward_prefetch", "auto")
    return implies(launched(facts, "fsdp2"), alone)


def _checkpoint_offload(facts: Facts) -> Expr:
    asked = facts.on("fsdp_activation_checkpointing_offload")
    kept = facts.on("fsdp_activation_checkpointing")
    return implies(asked, both(kept, negate(launched(facts, "fsdp1"))))


def _offload(facts: Facts) -> Expr:
    new, old = (
        implies(launched(facts, v), facts.says("fsdp_cpu_offload", "flag", v))
        for v in ("fsdp2", "fsdp1")
    )
    return both(new, old)


PLUGIN = (
    accelerate_rule(
        "fsdp-reshard",
        "FSDP2 is told by a flag whether it reshards after the forward, and by no "
        "strategy alone; FSDP1 by the name of a strategy",
        f"{PLUGIN_SOURCE}: reshard_after_forward",
        _reshard,
    ),
    accelerate_rule(
        "fsdp-strategy",
        "FSDP1 has the strategies FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD "
        "and HYBRID_SHARD_ZERO2",
        f"{PLUGIN_SOURCE}: sharding_strategy",
        _old_strategy,
    ),
    accelerate_rule(
        "fsdp-names",
        "the type of state dict, the policy of wrapping, the prefetch of the backward "
        "and the mixed precision of FSDP have names that it knows",
        f"{PLUGIN_SOURCE}: set_state_dict_type, auto_wrap_policy, set_mixed_precision",
        named(
            "fsdp_state_dict_type",
            "fsdp_auto_wrap_policy",
            "fsdp_backward_prefetch",
            "fsdp_mixed_precision",
        ),
    ),
    accelerate_rule(
        "fsdp2-state-dict",
        "FSDP2 has no local state dict",
        f"{PLUGIN_SOURCE}.set_state_dict_type",
        _local_state,
    ),
    accelerate_rule(
        "fsdp2-forward-prefetch",
        "FSDP2 has no prefetch of the forward, on or off",
        f"{PLUGIN_SOURCE}: forward_prefetch",
        _prefetch,
    ),
    accelerate_rule(
        "fsdp-checkpoint-offload",
        "offload of checkpointed activations needs checkpointing and FSDP2",
        f"{PLUGIN_SOURCE}: activation_checkpointing_offload",
        _checkpoint_offload,
    ),
    accelerate_rule(
        "fsdp-offload",
        "offload to the host is a flag, or the policy of FSDP's own version",
        f"{PLUGIN_SOURCE}.validate_cpu_offload",
        _offload,
    ),
)
