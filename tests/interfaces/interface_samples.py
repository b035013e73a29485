"""Answers written by hand, so that rendering is tested without solving."""

from __future__ import annotations

from shardproof.models.architecture import Architecture, Attention, DenseFFN, Layer
from shardproof.models.cluster import Cluster, Device, Fabric
from shardproof.models.layout import Layout
from shardproof.models.problem import Problem, Training
from shardproof.models.units import Bytes, BytesPerSecond, FlopsPerSecond, Seconds
from shardproof.solver.answer import (
    Answer,
    Certificate,
    Choice,
    Clash,
    Correction,
    Infeasible,
    Memory,
    Projection,
)

DEVICE = Device(
    name="round",
    vendor="nvidia",
    hbm_bytes=Bytes(64 * 2**30),
    nominal_hbm_gb=64.0,
    peak_flops={"bf16": FlopsPerSecond(1e15)},
    hbm_bandwidth=BytesPerSecond(1e12),
    host_bandwidth=BytesPerSecond(1e10),
    sources={"hbm_bytes": "made up"},
)
FABRIC = Fabric(
    scale_up_size=8,
    scale_up_bandwidth=BytesPerSecond(1e11),
    scale_up_latency=Seconds(1e-6),
    topology="switch",
    nic_bandwidth=BytesPerSecond(1e10),
    nic_latency=Seconds(1e-5),
    nics_per_node=8,
)
CLUSTER = Cluster(name="two", nodes=2, gpus_per_node=8, device=DEVICE, fabric=FABRIC)
LAYER = Layer(
    attention=Attention(heads=8, kv_heads=4, head_dim=16),
    feed_forward=DenseFFN(ffn=256, gated=True),
)
ARCHITECTURE = Architecture(
    name="tiny", hidden=128, vocab=512, layers=(LAYER,) * 4, source="made up"
)
PROBLEM = Problem(
    architecture=ARCHITECTURE,
    cluster=CLUSTER,
    training=Training(seq_len=1024, global_batch=32),
    pins={"tp": (2,)},
)
LAYOUT = Layout(
    tp=2,
    pp=2,
    vpp=1,
    cp=1,
    ep=1,
    etp=1,
    mbs=1,
    sp=1,
    schedule=0,
    split=0,
    recompute=0,
    sharding=1,
    dp=4,
    edp=8,
    m=8,
)


def choice(step_time_s: float, layout: Layout = LAYOUT) -> Choice:
    """Return one configuration of 32 and 24 GiB with a band of 30 %."""
    return Choice(
        layout=layout,
        memory=Memory(peak_bytes=32 * 2**30, per_rank=(32 * 2**30, 24 * 2**30)),
        projection=Projection(
            step_time_s=step_time_s,
            tokens_per_s_per_gpu=32 * 1024 / step_time_s / 16,
            mfu=0.456,
            bubble_fraction=0.125,
            band=(step_time_s * 0.7, step_time_s * 1.3),
            breakdown={"gemm": step_time_s * 0.75, "bubble": step_time_s * 0.25},
        ),
    )


CERTIFICATE = Certificate(
    status="complete",
    space="default@1",
    space_hash="ab" * 32,
    dialect="megatron@0.16",
    profile="prior",
    calibrated=False,
    feasible_count=1234,
    legal_count=56789,
    bound=2.0,
    gap=0.0,
)
ANSWER = Answer(
    problem=PROBLEM, answers=(choice(2.0), choice(2.5)), certificate=CERTIFICATE
)
INFEASIBLE = Infeasible(
    problem=PROBLEM,
    clashes=(Clash(rule="memory", sentence="the peak is at most 64 GiB; got 65 GiB"),),
    conflicts=(("memory",),),
    corrections=(
        Correction(rules=("memory",), missing_bytes=2**30, witness=LAYOUT),
        Correction(rules=("kv-tp", "heads-tp"), missing_bytes=0, witness=LAYOUT),
    ),
    missing_bytes=2**30,
    nearest=LAYOUT,
    space="default@1",
    legal_count=77,
)
