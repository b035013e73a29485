"""Rules of placement, recomputation and sharding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.architecture import Attention, DenseFFN
from ...models.expr import FALSE, TRUE, Expr, both, divides, one_of, table
from ...models.layout import RECOMPUTE_FULL, RECOMPUTE_MODULES, SHARDINGS
from .rule import Rule

if TYPE_CHECKING:
    from .rule import Facts

_CONFIG = "Megatron-LM megatron/core/transformer/transformer_config.py, __post_init__"


def _domain(facts: Facts) -> Expr:
    d = facts.dims
    return both(divides(d.tp, facts.domain), divides(d.etp, facts.domain))


def _modules(facts: Facts) -> Expr:
    """Look up which sets of modules the model has something to recompute for."""
    allowed = _recomputable(facts)
    legal = [int(code & ~allowed == 0) for code in range(RECOMPUTE_FULL)] + [1]
    return table(facts.dims.recompute, legal)


def _recomputable(facts: Facts) -> int:
    arch = facts.problem.architecture
    moe = arch.moe
    shared = bool(moe and moe.shared_ffn)
    dense = any(isinstance(k.feed_forward, DenseFFN) for k in arch.kinds)
    has = {
        "core_attn": True,
        "layernorm": True,
        "mla_up_proj": facts.latent,
        "mlp": dense,
        "moe": moe is not None,
        "moe_act": moe is not None,
        "shared_experts": shared,
    }
    return sum(1 << i for i, name in enumerate(RECOMPUTE_MODULES) if has[name])


def _sharding(facts: Facts) -> Expr:
    known = [SHARDINGS.index(name) for name in ("none", "zero-1")]
    return one_of(facts.dims.sharding, known)


def _latent(facts: Facts) -> Expr:
    """MLA has no key/value groups: an architecture cannot hold both in one layer."""
    kinds = facts.problem.architecture.kinds
    mixed = facts.latent and any(isinstance(k.attention, Attention) for k in kinds)
    return FALSE if mixed else TRUE


PLACEMENT = (
    Rule(
        id="tp-node",
        sentence="tp and etp stay inside one scale-up domain: they divide its D "
        "devices (D = {D})",
        source="Narayanan et al. 2021 (arXiv 2104.04473), section 3.2: tensor "
        "parallelism across nodes is slow; a default that a space can drop",
        body=_domain,
        where="never",
        kind="advice",
    ),
    Rule(
        id="recompute-selective",
        sentence="selective recomputation names modules the model has: mlp needs a "
        "dense layer, mla_up_proj MLA, moe and moe_act experts, shared_experts "
        "shared experts",
        source=f"{_CONFIG}: recompute_modules",
        body=_modules,
        where="config",
    ),
    Rule(
        id="sharding-stage",
        sentence="optimizer sharding is none or zero-1 (the distributed optimizer)",
        source="Megatron-LM megatron/core/distributed/"
        "distributed_data_parallel_config.py: use_distributed_optimizer",
        body=_sharding,
        where="config",
    ),
    Rule(
        id="mla-gqa",
        sentence="latent attention and grouped-query attention are not mixed in one "
        "model",
        source=f"{_CONFIG}: multi_latent_attention excludes num_query_groups",
        body=_latent,
        where="config",
    ),
)
