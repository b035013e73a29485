"""Rules of divisibility: heads, widths, sequence and batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.architecture import MoE
from ...models.expr import (
    TRUE,
    Expr,
    at_least,
    both,
    divides,
    either,
    equals,
    implies,
    less,
)
from .rule import Rule

if TYPE_CHECKING:
    from .rule import Facts

_CONFIG = "Megatron-LM megatron/core/transformer/transformer_config.py, __post_init__"


def _heads(facts: Facts) -> Expr:
    return both(*(divides(facts.dims.tp, heads) for heads in facts.heads))


def _kv_heads(facts: Facts) -> Expr:
    tp = facts.dims.tp
    return both(*(either(divides(tp, g), divides(g, tp)) for g in facts.kv_heads))


def _widths(facts: Facts) -> Expr:
    tp, etp = facts.dims.tp, facts.dims.etp
    conditions = []
    for kind in facts.problem.architecture.kinds:
        block = kind.feed_forward
        if isinstance(block, MoE):
            conditions.append(divides(etp, block.ffn))
            conditions.append(divides(tp, block.shared_ffn))
        else:
            conditions.append(divides(tp, block.ffn))
    return both(*conditions)


def _sequence_context(facts: Facts) -> Expr:
    cp, length = facts.dims.cp, facts.problem.training.seq_len
    return either(equals(cp, 1), divides(2 * cp, length))


def _sequence_parallel(facts: Facts) -> Expr:
    d, length = facts.dims, facts.problem.training.seq_len
    return implies(equals(d.sp, 1), divides(d.cp * d.tp, length))


def _batch(facts: Facts) -> Expr:
    d = facts.dims
    return equals(d.mbs * d.dp * d.m, facts.problem.training.global_batch)


def _sequence_needs_tensor(facts: Facts) -> Expr:
    d = facts.dims
    return either(equals(d.sp, 0), at_least(d.tp, 2))


def _moe_needs_sequence(facts: Facts) -> Expr:
    d = facts.dims
    if not facts.problem.architecture.is_moe:
        return TRUE
    return either(less(d.tp, 2), equals(d.sp, 1))


DIVISIBILITY = (
    Rule(
        id="heads-tp",
        sentence="H % tp = 0: attention heads divide over tp (H = {H})",
        source=f"{_CONFIG}: num_attention_heads",
        body=_heads,
        where="config",
    ),
    Rule(
        id="kv-tp",
        sentence="KV % tp = 0 or tp % KV = 0: key/value heads divide over tp or are "
        "replicated over it (KV = {KV})",
        source=f"{_CONFIG}: num_query_groups",
        body=_kv_heads,
        where="config",
    ),
    Rule(
        id="ffn-tp",
        sentence="feed-forward widths divide: dense and shared experts over tp, "
        "experts over etp",
        source="Megatron-LM megatron/core/tensor_parallel/layers.py, "
        "ColumnParallelLinear: divide(output_size, world_size)",
        body=_widths,
        where="build",
    ),
    Rule(
        id="seq-cp",
        sentence="with cp > 1, S % (2 * cp) = 0: the causal sequence is cut into "
        "2 * cp chunks (S = {S})",
        source="Megatron-LM megatron/training/arguments.py, validate_args",
        body=_sequence_context,
        where="launcher only",
    ),
    Rule(
        id="seq-sp",
        sentence="with sequence parallelism, S % (cp * tp) = 0 (S = {S})",
        source="Megatron-LM megatron/core/tensor_parallel/mappings.py, "
        "reduce_scatter_to_sequence_parallel_region",
        body=_sequence_parallel,
        where="first forward",
    ),
    Rule(
        id="batch",
        sentence="B = mbs * dp * m with a whole m >= 1 (B = {B})",
        source="Megatron-LM megatron/core/num_microbatches_calculator.py",
        body=_batch,
        where="micro-batches",
    ),
    Rule(
        id="sp-tp",
        sentence="sequence parallelism needs tp > 1",
        source="Megatron-LM megatron/core/model_parallel_config.py, __post_init__",
        body=_sequence_needs_tensor,
        where="config",
    ),
    Rule(
        id="moe-sp",
        sentence="a mixture of experts with tp > 1 needs sequence parallelism",
        source="Megatron-LM megatron/core/transformer/moe/moe_layer.py, "
        "MoELayer.forward",
        body=_moe_needs_sequence,
        where="first forward",
    ),
)
