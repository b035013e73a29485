"""Problems, profiles and batches of layouts for the tests of step times."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from strategies import architectures, plain_problem

from shardproof.models.cluster import Cluster, Device, Fabric
from shardproof.models.layout import RECOMPUTE_FULL, SCHEDULES, recompute_code
from shardproof.models.problem import Problem, Training
from shardproof.models.profiles import (
    AttentionLaw,
    GemmLaw,
    LinkLaw,
    MemoryLaw,
    Profile,
    StackLaw,
)
from shardproof.models.stages import stages

if TYPE_CHECKING:
    from shardproof.models.architecture import Architecture

Columns = dict[str, np.ndarray[Any, np.dtype[np.int64]]]

IDEAL_LINK = LinkLaw(
    all_reduce=1, all_gather=1, reduce_scatter=1, all_to_all=1, p2p=1, launch=0
)
#: Hardware that reaches its peaks, and software that hides and costs nothing.
IDEAL = Profile(
    name="ideal",
    gemm={"bf16": GemmLaw(ceiling=1, saturation=0, grouped=1)},
    attention=AttentionLaw(forward=1, backward=1, saturation=0),
    memory=MemoryLaw(elementwise=1, permute=1, loss=1, optimizer=1),
    scale_up=IDEAL_LINK,
    network=IDEAL_LINK,
    stack=StackLaw(
        tp_forward=1,
        tp_backward=1,
        ep_exposed=1,
        dp_window=1,
        dp_tail=0,
        sharding_overlap=2,
        host_layer=0,
        host_moe=0,
        host_backward=1,
        step=0,
    ),
    calibrated=False,
    band=0.0,
)
_FRACTION = st.sampled_from([0.1, 0.37, 0.8, 1.0])
RECOMPUTES = [
    0,
    RECOMPUTE_FULL,
    *map(recompute_code, ("core_attn", "layernorm+mlp", "moe", "moe_act+mla_up_proj")),
]
_SECONDS = st.sampled_from([0.0, 1e-5, 7e-4])


def _links() -> st.SearchStrategy[LinkLaw]:
    names = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p")
    return st.builds(LinkLaw, **dict.fromkeys(names, _FRACTION), launch=_SECONDS)


def profiles() -> st.SearchStrategy[Profile]:
    """Draw factors, extreme ones included."""
    share = st.sampled_from([0.0, 0.3, 1.0])
    saturation = st.sampled_from([0.0, 256.0])
    return st.builds(
        Profile,
        name=st.just("drawn"),
        gemm=st.builds(
            GemmLaw, ceiling=_FRACTION, saturation=saturation, grouped=_FRACTION
        ).map(lambda law: {"bf16": law}),
        attention=st.builds(
            AttentionLaw, forward=_FRACTION, backward=_FRACTION, saturation=saturation
        ),
        memory=st.builds(
            MemoryLaw,
            **dict.fromkeys(("elementwise", "permute", "loss", "optimizer"), _FRACTION),
        ),
        scale_up=_links(),
        network=_links(),
        stack=st.builds(
            StackLaw,
            **dict.fromkeys(
                ("tp_forward", "tp_backward", "ep_exposed", "dp_window", "dp_tail"),
                share,
            ),
            sharding_overlap=st.sampled_from([1.0, 1.5, 3.0]),
            **dict.fromkeys(("host_layer", "host_moe", "step"), _SECONDS),
            host_backward=st.sampled_from([0.0, 1.0, 2.0]),
        ),
        calibrated=st.just(False),
        band=st.just(0.3),
    )


@st.composite
def machines(draw: st.DrawFn) -> Cluster:
    """Draw 16 devices: one rack, nodes behind a network, or meshes."""
    device = Device(
        name="drawn",
        vendor="nvidia",
        hbm_bytes=2**36,
        nominal_hbm_gb=80.0,
        peak_flops={"bf16": draw(st.sampled_from([5e13, 1e15]))},
        hbm_bandwidth=draw(st.sampled_from([1e12, 8e12])),
        host_bandwidth=64e9,
    )
    fabric = Fabric(
        scale_up_size=draw(st.sampled_from([1, 4, 8, 16])),
        scale_up_bandwidth=draw(st.sampled_from([5e10, 9e11])),
        scale_up_latency=draw(st.sampled_from([0.0, 2e-6])),
        topology=draw(st.sampled_from(["switch", "mesh"])),
        nic_bandwidth=draw(st.sampled_from([1e9, 1e11])),
        nic_latency=draw(st.sampled_from([0.0, 1e-5])),
        nics_per_node=8,
        oversubscription=draw(st.sampled_from([1.0, 2.5])),
    )
    return Cluster(name="drawn", nodes=2, gpus_per_node=8, device=device, fabric=fabric)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Problem, Profile, Columns]:
    """Draw a problem, a profile, and some tens of its layouts."""
    architecture = draw(architectures())
    architecture = replace(architecture, mtp_layers=draw(st.sampled_from([0, 1])))
    problem = Problem(
        architecture=architecture,
        cluster=draw(machines()),
        training=Training(
            seq_len=draw(st.sampled_from([64, 1000, 4096])),
            global_batch=96,
            cross_entropy=draw(
                st.sampled_from(["unfused", "native-fused", "te-fused"])
            ),
        ),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    return problem, draw(profiles()), layouts(problem, rng, 30)


def layouts(problem: Problem, rng: np.random.Generator, count: int) -> Columns:
    """Draw layouts that divide the devices, the batch and the layers."""
    rows = [_data_parallel(problem)]
    while len(rows) < count:
        row = _layout(problem, rng)
        if row is not None:
            rows.append(row)
    return {n: np.array([row[n] for row in rows], np.int64) for n in rows[0]}


def _data_parallel(problem: Problem) -> dict[str, int]:
    world, batch = problem.cluster.world_size, problem.training.global_batch
    row = {name: int(column[0]) for name, column in one().items()}
    return row | {"dp": world, "edp": world, "m": batch // world}


def _layout(problem: Problem, rng: np.random.Generator) -> dict[str, int] | None:
    """Draw one layout, None if it does not divide what it must."""
    arch, world = problem.architecture, problem.cluster.world_size
    row = {n: int(rng.choice([1, 2, 4])) for n in ("tp", "pp", "vpp", "cp", "ep")}
    row |= {"mbs": int(rng.choice([1, 3])), "etp": int(rng.choice([1, 2]))}
    row |= {"split": int(rng.integers(3)), "sharding": int(rng.integers(4))}
    row["recompute"] = int(rng.choice(RECOMPUTES))
    row["sp"] = int(rng.integers(2)) if row["tp"] > 1 else 0
    if not arch.is_moe:
        row["ep"] = row["etp"] = 1
    if row["pp"] == 1:
        row["vpp"] = 1
    row["schedule"] = SCHEDULES.index("interleaved" if row["vpp"] > 1 else "1f1b")
    row["dp"], left = divmod(world, row["tp"] * row["pp"] * row["cp"])
    row["edp"], over = divmod(world, row["ep"] * row["etp"] * row["pp"])
    if left or over or problem.training.global_batch % (row["mbs"] * row["dp"]):
        return None
    row["m"] = problem.training.global_batch // (row["mbs"] * row["dp"])
    if row["vpp"] > 1 and row["m"] % row["pp"]:
        return None
    fits = stages(arch, row["split"], row["pp"], row["vpp"])
    return row if fits else None


def one(**axes: int) -> Columns:
    """Return a batch of one layout; axes that are not named are 1, choices 0."""
    choices = dict.fromkeys(("sp", "schedule", "split", "recompute", "sharding"), 0)
    sizes = dict.fromkeys(("tp", "pp", "vpp", "cp", "ep", "etp", "mbs"), 1)
    sizes |= dict.fromkeys(("dp", "edp", "m"), 1)
    return {n: np.array([v], np.int64) for n, v in (sizes | choices | axes).items()}


def on_one_device(architecture: Architecture, training: Training) -> Problem:
    """Put a model on a single device of the plain cluster."""
    problem, _ = plain_problem(nodes=1, gpus_per_node=1)
    return replace(problem, architecture=architecture, training=training)


def faster(cluster: Cluster, what: str, factor: float) -> Cluster:
    """Return the cluster with one peak multiplied."""
    device, fabric = cluster.device, cluster.fabric
    match what:
        case "flops":
            peaks = {n: p * factor for n, p in device.peak_flops.items()}
            return replace(cluster, device=replace(device, peak_flops=peaks))
        case "hbm":
            better = device.hbm_bandwidth * factor
            return replace(cluster, device=replace(device, hbm_bandwidth=better))
        case "scale-up":
            better = fabric.scale_up_bandwidth * factor
            return replace(cluster, fabric=replace(fabric, scale_up_bandwidth=better))
        case "network":
            better = fabric.nic_bandwidth * factor
            return replace(cluster, fabric=replace(fabric, nic_bandwidth=better))
    raise AssertionError(what)
