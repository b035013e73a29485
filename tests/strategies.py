"""Hypothesis strategies: expressions, architectures, clusters, whole problems."""

from hypothesis import strategies as st

from shardproof.models import expr as ex
from shardproof.models.architecture import (
    Architecture,
    Attention,
    DenseFFN,
    LatentAttention,
    Layer,
    MoE,
)
from shardproof.models.cluster import Cluster, Device, Fabric
from shardproof.models.layout import RECOMPUTE_FULL, recompute_code
from shardproof.models.problem import Problem, Training
from shardproof.solver.space import Space

AXES = (
    ex.Axis("x", (0, 1, 2, 5)),
    ex.Axis("y", (1, 2, 4)),
    ex.Axis("z", (1, 3)),
)


def expressions() -> st.SearchStrategy[ex.Expr]:
    """Draw a whole-number expression over ``AXES``, never negative."""
    leaves = st.one_of(
        st.integers(0, 9).map(ex.as_expr), st.sampled_from([ex.axis(a) for a in AXES])
    )

    def grow(inner: st.SearchStrategy[ex.Expr]) -> st.SearchStrategy[ex.Expr]:
        pair = st.tuples(inner, inner)
        positive = inner.map(lambda e: e + 1)
        truth = st.one_of(
            pair.map(lambda p: ex.at_most(*p)),
            pair.map(lambda p: ex.equals(*p)),
            st.tuples(positive, inner).map(lambda p: ex.divides(*p)),
        )
        truth = st.one_of(
            truth,
            st.tuples(truth, truth).map(lambda p: ex.both(*p)),
            st.tuples(truth, truth).map(lambda p: ex.either(*p)),
            st.tuples(truth, truth).map(lambda p: ex.implies(*p)),
            truth.map(ex.negate),
        )
        return st.one_of(
            pair.map(lambda p: p[0] + p[1]),
            pair.map(lambda p: p[0] * p[1]),
            st.tuples(inner, st.integers(0, 5)).map(lambda p: p[0] * p[1]),
            st.tuples(inner, positive).map(lambda p: ex.floor_div(*p)),
            st.tuples(inner, positive).map(lambda p: ex.ceil_div(*p)),
            st.tuples(inner, positive).map(lambda p: ex.modulo(*p)),
            pair.map(lambda p: ex.maximum(*p)),
            pair.map(lambda p: ex.minimum(*p)),
            st.tuples(truth, inner, inner).map(lambda p: ex.where(*p)),
            truth,
            st.lists(st.integers(0, 20), min_size=6, max_size=6).map(
                lambda v: ex.table(ex.axis(AXES[0]), v)
            ),
        )

    return st.recursive(leaves, grow, max_leaves=12)


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    """Draw a small transformer of any kind the catalogue knows."""
    kv = draw(st.sampled_from([1, 2, 3, 4, 8]))
    heads = kv * draw(st.sampled_from([1, 2, 3, 4]))
    attention: Attention | LatentAttention = Attention(
        heads=heads,
        kv_heads=kv,
        head_dim=draw(st.sampled_from([64, 128])),
        qkv_bias=draw(st.booleans()),
        qk_norm=draw(st.sampled_from(["none", "head"])),
    )
    if draw(st.integers(0, 3)) == 0:
        attention = LatentAttention(
            heads=heads,
            q_rank=draw(st.sampled_from([None, 96, 192])),
            kv_rank=64,
            nope_dim=64,
            rope_dim=32,
            v_dim=64,
        )
    dense = Layer(
        attention=attention,
        feed_forward=DenseFFN(
            ffn=draw(st.sampled_from([500, 512, 1000])), gated=draw(st.booleans())
        ),
    )
    layers = [dense] * draw(st.integers(1, 12))
    if draw(st.booleans()):
        moe = MoE(
            experts=draw(st.sampled_from([2, 4, 6, 8])),
            topk=draw(st.sampled_from([1, 2])),
            ffn=draw(st.sampled_from([256, 384])),
            gated=True,
            shared_ffn=draw(st.sampled_from([0, 128, 384])),
        )
        sparse = Layer(attention=attention, feed_forward=moe)
        layers[draw(st.integers(0, 1)) :] = [sparse] * draw(st.integers(1, 11))
    return Architecture(
        name="drawn",
        hidden=draw(st.sampled_from([256, 512, 768])),
        vocab=draw(st.sampled_from([1000, 32000, 50257])),
        layers=tuple(layers),
        mtp_layers=0,
        norm=draw(st.sampled_from(["rms", "layer"])),
        tied=draw(st.booleans()),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Draw a small cluster; its memory is scaled so that some layouts do not fit."""
    return Cluster(
        name="drawn",
        nodes=draw(st.sampled_from([1, 2, 3, 4])),
        gpus_per_node=draw(st.sampled_from([1, 2, 4, 6, 8])),
        device=Device(
            name="drawn",
            vendor="nvidia",
            hbm_bytes=draw(st.integers(2**28, 2**33)),
            nominal_hbm_gb=1.0,
            peak_flops={"bf16": 100e12},
            hbm_bandwidth=1e12,
            host_bandwidth=32e9,
        ),
        fabric=Fabric(
            scale_up_size=draw(st.sampled_from([2, 4, 8])),
            scale_up_bandwidth=300e9,
            scale_up_latency=1e-6,
            topology="switch",
            nic_bandwidth=25e9,
            nic_latency=5e-6,
            nics_per_node=1,
        ),
    )


def _subset(values: list[int], most: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(
        st.sampled_from(values), min_size=1, max_size=most, unique=True
    ).map(lambda v: tuple(sorted(v)))


_RECOMPUTE = ("none", "layernorm", "mlp", "moe_act", "mla_up_proj", "layernorm+mlp")


@st.composite
def problems(draw: st.DrawFn) -> tuple[Problem, Space]:
    """Draw a problem and a space of at most some ten thousand raw points.

    The first value of every axis is 1, and the batch is a multiple of the devices,
    so that the layout of pure data parallelism is a witness that rules allow
    (memory may still exclude it).
    """
    architecture, cluster = draw(architectures()), draw(clusters())
    batch = cluster.world_size * draw(st.sampled_from([1, 2, 3, 4, 8]))
    problem = Problem(
        architecture=architecture,
        cluster=cluster,
        training=Training(
            seq_len=draw(st.sampled_from([64, 96, 512, 1000])), global_batch=batch
        ),
    )
    codes = [recompute_code(r) for r in _RECOMPUTE] + [RECOMPUTE_FULL]
    sizes = {n: draw(_subset([1, 2, 3, 4, 6, 8], 3)) for n in ("tp", "pp", "ep")}
    sizes |= {n: draw(_subset([1, 2, 3], 2)) for n in ("vpp", "cp", "etp", "mbs")}
    axes = {
        **{n: tuple(sorted({1, *v})) for n, v in sizes.items()},
        "sp": (0, 1),
        "schedule": (0, 1),
        "split": (0, 1, 2),
        "recompute": tuple(sorted({0, *draw(_subset(codes, 2))})),
        "sharding": (0, 1),
    }
    advice = ("tp-node",) if draw(st.booleans()) else ()
    return problem, Space(name="drawn", version=1, axes=axes, advice=advice)


def plain_problem(
    *, nodes: int = 1, gpus_per_node: int = 8, global_batch: int = 32, **device: int
) -> tuple[Problem, Space]:
    """Return a small dense model on a small cluster, and a space for it."""
    architecture = Architecture(
        name="plain",
        hidden=512,
        vocab=32000,
        layers=(
            Layer(
                attention=Attention(heads=8, kv_heads=4, head_dim=64),
                feed_forward=DenseFFN(ffn=1536, gated=True),
            ),
        )
        * 8,
    )
    cluster = Cluster(
        name="plain",
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        device=Device(
            name="plain",
            vendor="nvidia",
            hbm_bytes=device.get("hbm_bytes", 2**34),
            nominal_hbm_gb=16.0,
            peak_flops={"bf16": 100e12},
            hbm_bandwidth=1e12,
            host_bandwidth=32e9,
        ),
        fabric=Fabric(
            scale_up_size=gpus_per_node,
            scale_up_bandwidth=300e9,
            scale_up_latency=1e-6,
            topology="switch",
            nic_bandwidth=25e9,
            nic_latency=5e-6,
            nics_per_node=gpus_per_node,
        ),
    )
    problem = Problem(
        architecture=architecture,
        cluster=cluster,
        training=Training(seq_len=512, global_batch=global_batch),
    )
    axes = {
        **{n: (1, 2, 4) for n in ("tp", "pp")},
        "vpp": (1, 2),
        "cp": (1, 2),
        "ep": (1,),
        "etp": (1,),
        "mbs": (1, 2),
        "sp": (0, 1),
        "schedule": (0, 1),
        "split": (0, 1),
        "recompute": (0, RECOMPUTE_FULL),
        "sharding": (0, 1),
    }
    return problem, Space(name="plain", version=1, axes=axes, advice=())
