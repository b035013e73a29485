"""Collectives against times worked out by hand and published measurements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from time_cases import IDEAL

from shardproof.models.catalogue import cluster
from shardproof.models.cluster import Cluster, Fabric, Topology
from shardproof.models.profiles import load_profile
from shardproof.models.time.collectives import Links

MIB = 2**20


def links(
    topology: Topology = "switch", *, launch: float = 0.0, oversubscription: float = 1.0
) -> Links:
    """Two nodes of 8 at 100 GB/s, one interface of 10 GB/s each."""
    fabric = Fabric(
        scale_up_size=8,
        scale_up_bandwidth=100e9,
        scale_up_latency=1e-6,
        topology=topology,
        nic_bandwidth=10e9,
        nic_latency=10e-6,
        nics_per_node=8,
        oversubscription=oversubscription,
    )
    base = cluster("2x8:h100")
    machine = Cluster(
        name="two", nodes=2, gpus_per_node=8, device=base.device, fabric=fabric
    )
    laws = replace(IDEAL.scale_up, launch=launch)
    return Links(machine, replace(IDEAL, scale_up=laws))


def a(value: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([value])


def test_ring_inside_a_domain() -> None:
    """Seven eighths of 1 GB at 100 GB/s, seven hops of 1 us and a start of 20 us."""
    found = links(launch=20e-6).ring("all_gather", a(8), a(1), a(1e9))
    assert found[0] == pytest.approx(8.75e-3 + 7e-6 + 20e-6, rel=1e-12)
    found = links(launch=20e-6).ring("all_reduce", a(8), a(1), a(1e9))
    assert found[0] == pytest.approx(17.5e-3 + 7e-6 + 20e-6, rel=1e-12)


def test_ring_between_domains_uses_every_interface() -> None:
    """16 ranks: 15/16 of 1 GB crosses a boundary of eight interfaces of 10 GB/s."""
    found = links().ring("reduce_scatter", a(16), a(1), a(1e9))
    assert found[0] == pytest.approx(15 / 16 * 1e9 / 80e9 + 7e-6 + 10e-6, rel=1e-12)


def test_ring_of_ranks_in_different_domains() -> None:
    """Two ranks 8 apart have one interface between them."""
    found = links().ring("all_reduce", a(2), a(8), a(1e9))
    assert found[0] == pytest.approx(1e9 / 10e9 + 10e-6, rel=1e-12)


def test_oversubscribed_spine_halves_the_network() -> None:
    found = links(oversubscription=2.0).ring("all_reduce", a(2), a(8), a(1e9))
    assert found[0] == pytest.approx(1e9 / 5e9 + 10e-6, rel=1e-12)


@pytest.mark.parametrize(("size", "share"), [(2, 1 / 7), (4, 3 / 7), (8, 1.0)])
def test_mesh_gives_a_part_of_a_group_its_links(size: int, share: float) -> None:
    found = links("mesh").ring("all_gather", a(size), a(1), a(1e9))
    moved = 1e9 * (size - 1) / size
    wanted = moved / (100e9 * share) + (size - 1) * 1e-6
    assert found[0] == pytest.approx(wanted, rel=1e-12)


def test_all_to_all_splits_by_destination() -> None:
    """16 ranks: 7/16 stays in the node at 100 GB/s, 8/16 leaves at 10 GB/s."""
    found = links().all_to_all(a(16), a(1), a(1.6e9))
    assert found[0] == pytest.approx(0.8e9 / 10e9 + 7e-6 + 10e-6, rel=1e-12)
    found = links().all_to_all(a(8), a(1), a(1.6e9))
    assert found[0] == pytest.approx(1.4e9 / 100e9 + 7e-6, rel=1e-12)


def test_group_of_one_is_free() -> None:
    every = links(launch=1.0)
    assert every.ring("all_reduce", a(1), a(4), a(1e9))[0] == 0
    assert every.all_to_all(a(1), a(4), a(1e9))[0] == 0
    assert every.neighbour(a(1), a(4), a(1e9))[0] == 0
    assert every.hop(1.0, a(1e9))[0] == 0


def test_hop_between_stages() -> None:
    """Two stages are a node each; of four, every second hop leaves a node."""
    inside, between = 1e6 / 100e9 + 1e-6, 1e6 / 10e9 + 10e-6
    assert links().hop(2.0, a(1e6))[0] == pytest.approx(between, rel=1e-12)
    mean = (inside + between) / 2
    assert links().hop(4.0, a(1e6))[0] == pytest.approx(mean, rel=1e-12)


#: Bus bandwidth in GB/s of 512 MiB on 8 devices: all-reduce, all-gather,
#: reduce-scatter, all-to-all. Source: NVIDIA aiconfigurator, nccl_perf tables at
#: commit 095f58a.
NCCL = {"a100-80": (222, 205, 213, 203), "h100": (445, 335, 336, 315)}


@pytest.mark.parametrize("device", NCCL)
def test_profiles_give_measured_bandwidths(device: str) -> None:
    profile = load_profile({"a100-80": "ampere", "h100": "hopper"}[device])
    machine = Links(cluster(f"1x8:{device}"), profile)
    volume = 512.0 * MIB
    times = [
        machine.ring("all_reduce", a(8), a(1), a(volume)),
        machine.ring("all_gather", a(8), a(1), a(volume)),
        machine.ring("reduce_scatter", a(8), a(1), a(volume)),
        machine.all_to_all(a(8), a(1), a(volume)),
    ]
    moved = [2 * 7 / 8, 7 / 8, 7 / 8, 7 / 8]
    for time, part, measured in zip(times, moved, NCCL[device], strict=True):
        assert volume * part / time[0] / 1e9 == pytest.approx(measured, rel=0.08)


def test_a_crowded_network_loses_bandwidth_beyond_two_domains() -> None:
    crowded = replace(IDEAL, network=replace(IDEAL.network, crowding=1.0))
    times = []
    for profile in (IDEAL, crowded):
        net = Links(cluster("8x8:h100"), profile)
        sizes, ones = np.array([8.0, 16.0, 64.0]), np.ones(3)
        rate, _ = net.ring_rate("all_reduce", sizes, ones)
        times.append(rate)
    # One domain, two, and eight: four times as many as two.
    assert times[1] / times[0] == pytest.approx([1, 1, 4])
