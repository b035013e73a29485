"""Rules of this planner: one writing of each configuration, and no empty choice.

An axis that has no meaning beside the others takes the first value of its list, so
that no configuration is counted twice.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

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
    maximum,
    negate,
    one_of,
    table,
)
from ...models.layout import (
    OFFLOADS,
    RECOMPUTE_BLOCK,
    RECOMPUTE_FULL,
    SHARDINGS,
    SPLITS,
    recompute_layers,
)
from ...models.stages import layers_per_chunk
from .rule import Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from .facts import Facts

_FSDP = [SHARDINGS.index(name) for name in ("megatron-fsdp", "fsdp2")]
_HSDP = SHARDINGS.index("hsdp")
_BLOCK = "megatron-core 0.16.1 megatron/core/transformer/transformer_block.py, "


def _first_style(facts: Facts) -> Expr:
    d = facts.dims
    return implies(equals(d.cp, 1), equals(d.cp_style, d.cp_style.lo))


def _first_dispatcher(facts: Facts) -> Expr:
    axis = facts.dims.dispatcher
    return TRUE if facts.sizes.moe else equals(axis, axis.lo)


def _shared_present(facts: Facts) -> Expr:
    present = facts.sizes.moe and facts.sizes.shared_ffn
    return TRUE if present else equals(facts.dims.overlap_shared, 0)


def _replicas(facts: Facts) -> Expr:
    d = facts.dims
    several = implies(equals(d.sharding, _HSDP), at_least(d.instances, 2))
    return both(several, implies(one_of(d.sharding, _FSDP), equals(d.instances, 1)))


def _by_release(facts: Facts) -> Expr:
    return less(facts.dims.offload, OFFLOADS.index("activations"))


def _sizes(facts: Facts, of: Callable[[tuple[int, ...]], int]) -> Expr:
    """Look up by split, pp and vpp what holds of the chunks' layers, 0 for none."""
    d, layers = facts.dims, facts.sizes.layers
    tall, wide = d.pp.hi + 1, d.vpp.hi + 1
    found = [
        of(layers_per_chunk(split, layers, pp, vpp) if pp and vpp else ())
        for split in range(len(SPLITS))
        for pp in range(tall)
        for vpp in range(wide)
    ]
    return table((d.split * tall + d.pp) * wide + d.vpp, found)


def _whole_groups(facts: Facts) -> Expr:
    axis = facts.dims.recompute
    if axis.hi <= RECOMPUTE_FULL or facts.structures.layout is not None:
        return TRUE
    groups = table(axis, [recompute_layers(c)[0] for c in range(axis.hi + 1)])
    common = _sizes(facts, lambda sizes: gcd(*sizes) if sizes else 1)
    return divides(maximum(groups, 1), common)


def _part_of_chunk(facts: Facts) -> Expr:
    axis = facts.dims.recompute
    if axis.hi <= RECOMPUTE_BLOCK or facts.structures.layout is not None:
        return TRUE
    blocks = table(axis, [recompute_layers(c)[1] for c in range(axis.hi + 1)])
    largest = _sizes(facts, lambda sizes: max(sizes, default=0))
    return either(equals(blocks, 0), less(blocks, largest))


def _no_scaler(facts: Facts) -> Expr:
    formats, said = facts.sizes.formats, facts.says("precision", "fp16")
    return TRUE if not formats or "fp16" in formats else negate(said)


PLANNER = (
    Rule(
        id="cp-style-one",
        sentence="with cp = 1 the style of context parallelism, which has no meaning, "
        "is the first of its list",
        source="this planner: one writing of each configuration",
        body=_first_style,
        where="never",
        checker="product",
    ),
    Rule(
        id="dispatcher-dense",
        sentence="without experts the dispatcher, which has no meaning, is the first "
        "of its list (E = {E})",
        source="this planner: one writing of each configuration",
        body=_first_dispatcher,
        where="never",
        checker="product",
    ),
    Rule(
        id="shared-overlap-present",
        sentence="only a model with shared experts overlaps them",
        source="this planner: a switch of what is not there changes nothing",
        body=_shared_present,
        where="never",
        checker="product",
    ),
    Rule(
        id="hsdp",
        sentence="hsdp has several instances, Megatron-FSDP and torch FSDP2 one",
        source="this planner: FSDP over replicas is what hsdp says",
        body=_replicas,
        where="never",
        checker="product",
    ),
    Rule(
        id="offload-release",
        sentence="offload of activations by module came with 0.16",
        source="megatron-core 0.16.1 megatron/core/transformer/transformer_config.py: "
        "fine_grained_activation_offloading, which 0.15 has not",
        body=_by_release,
        where="config",
        checker="product",
        until="0.15",
    ),
    Rule(
        id="recompute-groups",
        sentence="full uniform recomputation goes by a number of layers that divides "
        "those of every chunk of the split (L = {L})",
        source=f"{_BLOCK}TransformerBlock._checkpointed_forward: past its last layer "
        "the index is out of range",
        body=_whole_groups,
        where="first forward",
        checker="product",
    ),
    Rule(
        id="recompute-block",
        sentence="full block recomputation is by fewer layers than the largest chunk "
        "has, or it is what full says (L = {L})",
        source=f"{_BLOCK}TransformerBlock._checkpointed_forward: counts per chunk, "
        "cut down without a word",
        body=_part_of_chunk,
        where="never",
        checker="product",
    ),
    Rule(
        id="fp16-device",
        sentence="fp16 needs a device with matrix units for it",
        source="the vendors' data sheets, as in the catalogue of devices",
        body=_no_scaler,
        where="first forward",
        checker="product",
    ),
)
