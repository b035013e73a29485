"""Rules of the group algebra: the dense and the expert grid of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    FALSE,
    TRUE,
    Expr,
    at_least,
    both,
    divides,
    either,
    equals,
    maximum,
    negate,
    product,
)
from .rule import Rule
from .sources import CONFIG, DATA_PARALLEL, LAUNCHER, MOE_LAYER, STATE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .facts import Facts


def _world_dense(facts: Facts) -> Expr:
    d = facts.dims
    return equals(d.tp * d.pp * d.cp * d.dp, facts.sizes.world)


def _world_expert(facts: Facts) -> Expr:
    d = facts.dims
    return equals(d.etp * d.ep * d.pp * d.edp, facts.sizes.world)


def _moe_only(facts: Facts) -> Expr:
    return TRUE if facts.sizes.moe else equals(facts.dims.ep, 1)


def _one_expert_tensor(facts: Facts) -> Expr:
    return TRUE if facts.sizes.moe else equals(facts.dims.etp, 1)


def _experts(facts: Facts) -> Expr:
    return both(*(divides(facts.dims.ep, e) for e in facts.sizes.experts))


def _some_experts(facts: Facts) -> Expr:
    return both(*(at_least(e, 1) for e in facts.sizes.experts))


def _stride(order: str, sizes: Mapping[str, Expr]) -> Expr:
    """Distance of neighbours in a pipeline: the sizes that vary faster than pp."""
    names = order.split("-")
    before = names[: names.index("pp")] if "pp" in names else names
    return product(sizes[n] for n in before if n in sizes)


def _same_pipelines(facts: Facts) -> Expr:
    d, order = facts.dims, facts.structures.order
    dense = {"tp": d.tp, "cp": d.cp, "dp": d.dp}
    expert = {"tp": d.etp, "ep": d.ep, "dp": d.edp}
    # Where pp comes last both strides are W / pp, by the two world rules.
    if order.endswith("pp"):
        return TRUE
    same = equals(_stride(order, dense), _stride(order, expert))
    return either(equals(d.pp, 1), both(equals(d.edp, d.dp), same))


def _order_is_complete(facts: Facts) -> Expr:
    d, names = facts.dims, facts.structures.order.split("-")
    if len(set(names)) != len(names) or not set(names) <= {
        "tp",
        "cp",
        "ep",
        "dp",
        "pp",
    }:
        return FALSE
    missing = [n for n in ("tp", "cp", "ep", "dp", "pp") if n not in names]
    unit = [equals(getattr(d, n), 1) for n in missing]
    if "dp" in missing:
        unit.append(equals(d.edp, 1))
    return both(*unit)


def _instances(facts: Facts) -> Expr:
    d, number = facts.dims, facts.option("num_distributed_optimizer_instances")
    parts = maximum(number, 1)
    whole = both(divides(parts, d.dp * d.cp), divides(parts, d.edp))
    return both(at_least(number, 1), whole)


def _instances_sharded(facts: Facts) -> Expr:
    number = facts.option("num_distributed_optimizer_instances")
    return either(equals(number, 1), facts.distributed_optimizer)


GROUPS = (
    Rule(
        id="degrees",
        sentence="tp, pp, vpp, cp, ep and etp are at least 1",
        source=f"{STATE}: the world is divided by them; {CONFIG}: "
        "pipeline_model_parallel_size > 0",
        body=lambda f: negate(f.on("degree_below_one")),
        where="groups",
    ),
    Rule(
        id="world-dense",
        sentence="W = tp * pp * cp * dp with a whole dp >= 1 (W = {W})",
        source=STATE,
        body=_world_dense,
        where="groups",
    ),
    Rule(
        id="world-expert",
        sentence="W = etp * ep * pp * edp with a whole edp >= 1 (W = {W})",
        source=f"{STATE}: expert_tensor_model_pipeline_parallel_size",
        body=_world_expert,
        where="groups",
    ),
    Rule(
        id="rank-order",
        sentence="the order of ranks names tp, cp, ep, dp and pp at most once each, "
        "and every one above 1",
        source=f"{STATE}, RankGenerator",
        body=_order_is_complete,
        where="groups",
    ),
    Rule(
        id="pp-shared",
        sentence="the dense and the expert grid share their pipelines: the order of "
        "ranks ends in pp, or pp = 1, or edp = dp",
        source=STATE,
        body=_same_pipelines,
        where="groups",
    ),
    Rule(
        id="ep-moe",
        sentence="a dense model has no expert parallelism: ep = 1 (E = {E})",
        source=f"{CONFIG}: expert_model_parallel_size needs num_moe_experts",
        body=_moe_only,
        where="config",
    ),
    Rule(
        id="etp-dense",
        sentence="a dense model is written with etp = 1 (E = {E})",
        source="this planner: etp has no meaning without experts, though Megatron "
        "accepts any that divides the world",
        body=_one_expert_tensor,
        where="never",
        checker="product",
    ),
    Rule(
        id="experts-positive",
        sentence="a number of experts, where given, is at least 1 (E = {E})",
        source=f"{CONFIG}: num_moe_experts",
        body=_some_experts,
        where="config",
    ),
    Rule(
        id="experts-ep",
        sentence="E % ep = 0: every expert-parallel rank holds equally many experts "
        "(E = {E})",
        source=f"{MOE_LAYER}, BaseMoELayer; {LAUNCHER}",
        body=_experts,
        where="build",
    ),
    Rule(
        id="instances",
        sentence="the instances of the distributed optimizer divide dp * cp and edp",
        source=f"{STATE}: num_distributed_optimizer_instances",
        body=_instances,
        where="groups",
    ),
    Rule(
        id="instances-sharding",
        sentence="several instances of the distributed optimizer need the distributed "
        "optimizer: sharding of at least zero-1",
        source=f"{DATA_PARALLEL}, DistributedDataParallel",
        body=_instances_sharded,
        where="build",
        checker="step",
    ),
)
