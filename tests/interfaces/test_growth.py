"""How many nodes would be enough."""

from __future__ import annotations

from dataclasses import replace

from interface_samples import CLUSTER, DEVICE, PROBLEM

from shardproof.interfaces.growth import enough_nodes
from shardproof.models.architecture import Architecture, Attention, DenseFFN, Layer
from shardproof.models.problem import Problem, Training
from shardproof.models.units import Bytes
from shardproof.solver.domains import bind
from shardproof.solver.explain import explain
from shardproof.solver.feasible import enumerate_feasible
from shardproof.solver.space import load_space

SPACE = load_space()
LAYER = Layer(
    attention=Attention(heads=16, kv_heads=16, head_dim=64),
    feed_forward=DenseFFN(ffn=4096, gated=True),
)
MODEL = Architecture(name="small", hidden=1024, vocab=32000, layers=(LAYER,) * 8)


def small(hbm_bytes: int, nodes: int) -> Problem:
    device = replace(DEVICE, hbm_bytes=Bytes(hbm_bytes))
    cluster = replace(CLUSTER, nodes=nodes, gpus_per_node=1, device=device)
    training = Training(seq_len=512, global_batch=64)
    return replace(
        PROBLEM, architecture=MODEL, cluster=cluster, training=training, pins={}
    )


def test_the_number_is_enough_and_half_of_it_is_not() -> None:
    """Tests devices one byte too small for the model on one of them."""
    need = 1 + (explain(bind(small(1, 1), SPACE)).missing_bytes or 0)
    assert enumerate_feasible(small(need, 1), SPACE).count
    for limit in (need - 1, need * 2 // 3):
        assert not enumerate_feasible(small(limit, 1), SPACE).count
        nodes = enough_nodes(small(limit, 1), SPACE)
        assert nodes is not None
        assert enumerate_feasible(small(limit, nodes), SPACE).count
        assert not enumerate_feasible(small(limit, nodes // 2), SPACE).count


def test_no_number_where_nothing_ever_fits() -> None:
    assert enough_nodes(small(1, 512), SPACE) is None
