"""Rules of torchtitan: its own where it differs, Megatron's bodies where it agrees."""

from __future__ import annotations

from dataclasses import replace
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
    one_of,
    where,
)
from ...models.layout import SCHEDULES
from .divisibility import DIVISIBILITY
from .groups import GROUPS
from .recompute import RECOMPUTE
from .rule import Rule
from .stages import SPLIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from .facts import Facts
    from .rule import Where

_TITAN = "torchtitan 0.3.0 torchtitan/"
_MESH = f"{_TITAN}distributed/parallel_dims.py, ParallelDims"
_DECODER = f"{_TITAN}models/common/decoder.py, Decoder.Config.update_from_config"
_PIPELINE = f"{_TITAN}distributed/pipeline_parallel.py"
#: Rules whose bodies torchtitan shares, with the place where it says so.
_SHARED = {
    "world-dense": f"{_MESH}._validate",
    "world-expert": f"{_MESH}.build_mesh: efsdp",
    "ep-moe": f"{_TITAN}distributed: experts are sharded over ep",
    "etp-dense": "this planner: etp has no meaning without experts",
    "experts-ep": f"{_TITAN}distributed/minimal_async_ep/api.py; DTensor shards evenly",
    "heads-tp": _DECODER,
    "batch": f"{_TITAN}trainer.py: global_batch_size",
    "layers-pp": f"{_PIPELINE}: this planner's even family",
    "layers-balanced": f"{_PIPELINE}: this planner's balanced family",
    "layers-uneven": f"{_PIPELINE}: first_stage_less_layers, last_stage_less_layers",
    "recompute-present": "this planner: a module that is not there changes nothing",
}


def _kv_heads(facts: Facts) -> Expr:
    return both(*(divides(facts.dims.tp, g) for g in facts.sizes.kv_heads))


def _sequence(facts: Facts) -> Expr:
    d = facts.dims
    by_tp = where(equals(d.sp, 1), d.tp, 1)
    by_cp = where(equals(d.cp, 1), 1, 2 * d.cp)
    return divides(by_tp * by_cp, facts.sizes.seq_len)


def _grid(facts: Facts) -> Expr:
    """From 0.3 on experts are never cut by tensor parallelism."""
    return equals(facts.dims.etp, 1)


def _borrowed(facts: Facts) -> Expr:
    d = facts.dims
    alike = both(equals(d.etp, d.tp), divides(d.cp, d.ep), divides(d.ep, d.dp * d.cp))
    mesh = d.cp * d.tp
    alone = both(equals(d.etp, 1), divides(mesh, d.ep), divides(d.ep, d.dp * mesh))
    return either(equals(d.ep, 1), alike, alone)


def _cut(facts: Facts) -> Expr:
    d = facts.dims
    known = either(equals(d.ep, 1), equals(d.etp, 1), equals(d.etp, d.tp))
    return both(known, divides(d.etp * d.ep, d.dp * d.cp * d.tp))


def _expert_mesh(facts: Facts) -> Expr:
    d = facts.dims
    return divides(d.ep, d.dp * d.cp * d.tp)


def _tied(facts: Facts) -> Expr:
    return equals(facts.dims.pp, 1) if facts.sizes.tied else TRUE


def _schedule(facts: Facts) -> Expr:
    d = facts.dims

    def of(*names: str) -> Expr:
        return one_of(d.schedule, [SCHEDULES.index(name) for name in names])

    single = both(of("1f1b", "gpipe"), equals(d.vpp, 1))
    many = both(of("interleaved"), at_least(d.vpp, 2))
    return either(single, many, both(of("zbv", "dualpipev"), equals(d.vpp, 2)))


def _stages(facts: Facts) -> Expr:
    """Count embedding and head as a layer each, as torchtitan does by default."""
    d = facts.dims
    virtual = d.pp * d.vpp
    return implies(at_least(virtual, 2), at_most(virtual, facts.sizes.layers + 2))


def _virtual(facts: Facts) -> Expr:
    return either(equals(facts.dims.vpp, 1), at_least(facts.dims.pp, 2))


def _copies() -> tuple[Rule, ...]:
    found = (*GROUPS, *DIVISIBILITY, *SPLIT, *RECOMPUTE)
    return tuple(
        replace(
            rule,
            source=_SHARED[rule.id],
            dialect="torchtitan",
            checker="product" if rule.checker == "product" else "torchtitan",
        )
        for rule in found
        if rule.id in _SHARED
    )


def _own(
    id: str,
    sentence: str,
    source: str,
    *,
    body: Callable[[Facts], Expr],
    stage: Where = "config",
    since: str = "",
    until: str = "",
) -> Rule:
    return Rule(
        id=id,
        sentence=sentence,
        source=source,
        body=body,
        where=stage,
        checker="torchtitan",
        dialect="torchtitan",
        since=since,
        until=until,
    )


TORCHTITAN = (
    *_copies(),
    _own(
        "kv-tp",
        "KV % tp = 0: key/value heads are never replicated (KV = {KV})",
        _DECODER,
        body=_kv_heads,
    ),
    _own(
        "seq-cp",
        "S divides by 2 * cp where cp > 1, times tp with sequence parallelism (S = "
        "{S})",
        f"{_TITAN}trainer.py: seq_len_divisor",
        body=_sequence,
    ),
    _own(
        "etp-one",
        "experts are not cut by tensor parallelism: etp = 1",
        f"{_MESH}: no etp",
        body=_grid,
        since="0.3",
    ),
    _own(
        "ep-mesh",
        "ep divides dp * cp * tp",
        f"{_MESH}.build_mesh: efsdp",
        body=_expert_mesh,
        stage="groups",
        since="0.3",
    ),
    _own(
        "ep-borrows",
        "ep > 1 has etp = tp, is a multiple of cp and divides dp * cp, or has etp = "
        "1, is a multiple of cp * tp and divides dp * cp * tp",
        "torchtitan 0.2.0 torchtitan/distributed/parallel_dims.py, "
        "ParallelDims._validate",
        body=_borrowed,
        stage="groups",
        until="0.2.0",
    ),
    _own(
        "ep-etp",
        "ep > 1 has etp = tp or etp = 1, and etp * ep divides dp * cp * tp",
        "torchtitan 0.2.2 torchtitan/distributed/parallel_dims.py, "
        "ParallelDims._validate, build_mesh",
        body=_cut,
        stage="groups",
        since="0.2",
        until="0.2",
    ),
    _own(
        "tied-pp",
        "tied embeddings need pp = 1",
        f"{_DECODER}: enable_weight_tying",
        body=_tied,
    ),
    _own(
        "schedule-vpp",
        "1f1b and gpipe have vpp = 1, interleaved vpp > 1, zbv and dualpipev vpp = 2",
        f"{_PIPELINE}: PipelineScheduleSingle, PipelineScheduleMulti",
        body=_schedule,
    ),
    _own(
        "stages",
        "pp * vpp stages are at most the L layers, embedding and head (L = {L})",
        f"{_PIPELINE}, _generate_llm_fqn_per_model_part",
        body=_stages,
        stage="build",
    ),
    _own("vpp-pp", "vpp > 1 needs pp > 1", _PIPELINE, body=_virtual),
    Rule(
        id="bad-zero-bubble-compile",
        sentence="zero-bubble schedules with selective recomputation are slower and "
        "larger",
        source="torchtitan issue 773",
        body=lambda f: implies(
            one_of(f.dims.schedule, [SCHEDULES.index("zbv")]),
            either(equals(f.dims.recompute, 0), f.full),
        ),
        where="never",
        checker="step",
        kind="known-bad",
        dialect="torchtitan",
    ),
)
