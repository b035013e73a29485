"""The cluster of a row: device, nodes, fabric."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ...models import catalogue
from ...models.units import GB, Bytes, BytesPerSecond
from .rules import Unstated

if TYPE_CHECKING:
    from ...models.cluster import Cluster, Device, Fabric
    from .row import Row

#: Memory bandwidth of parts whose name states a slower memory, in bytes/s. The
#: figure of HBM2e H100s is what pytorch/torchtitan's docs/performance.md names.
_SLOWER = {"hbm2e": 2.4e12}
_DEFAULT_NODE = {"gb200": 4, "gb300": 4}


def device_of(row: Row) -> tuple[Device, tuple[str, ...]]:
    """Return the device a row names, and the rules used.

    Raises
    ------
    Unstated
        If it names none, or one that the catalogue lacks.
    """
    text = re.sub(r"[\s_]+", "-", row.text("gpu").lower()).removeprefix("nvidia-")
    if not text:
        raise Unstated("no-device")
    known = catalogue.names("devices")
    base = text.split("-")[0]
    rules: tuple[str, ...] = ()
    memory = row.number("hbm_gb") or _stated_memory(text)
    if base in ("a100", "v100"):
        sizes = {"a100": (40, 80), "v100": (16, 32)}[base]
        if memory is None:
            rules = ("capacity-device",)
        size = sizes[0] if memory is not None and memory <= sizes[0] else sizes[1]
        name = f"{base}-{size}"
    elif f"{base}-pcie" in known and "pcie" in text:
        name = f"{base}-pcie"
    else:
        name = base
    if name not in known:
        raise Unstated("no-device")
    found = catalogue.device(name)
    if memory is not None and memory > found.nominal_hbm_gb * 1.1:
        found = replace(found, hbm_bytes=Bytes(int(memory * GB)), nominal_hbm_gb=memory)
    for word, bandwidth in _SLOWER.items():
        if word in text:
            found = replace(found, hbm_bandwidth=BytesPerSecond(bandwidth))
    return found, rules


def _stated_memory(text: str) -> float | None:
    found = re.search(r"(\d+)-?gb", text)
    return float(found[1]) if found else None


def cluster_of(row: Row) -> tuple[Cluster, tuple[str, ...]]:
    """Return the cluster of a row, and the rules used.

    Raises
    ------
    Unstated
        If the device or the number of devices is not stated.
    """
    device, rules = device_of(row)
    devices = row.whole("num_gpus")
    if devices is None:
        nodes, each = row.whole("nodes"), row.whole("gpus_per_node")
        if nodes is None or each is None:
            raise Unstated("no-devices")
        devices = nodes * each
    if devices > 2**20:
        raise Unstated("no-devices")
    each = row.whole("gpus_per_node")
    if each is None:
        each = _DEFAULT_NODE.get(device.name, 8)
        rules = (*rules, "gpus-per-node")
    if devices <= each:
        each = devices
    elif devices % each:
        each = next(k for k in range(each, 0, -1) if devices % k == 0)
    plain = catalogue.cluster(f"{devices // each}x{each}:{device.name}")
    fabric = _stated_network(plain.fabric, row, each)
    if "pcie" in row.words("gpu", "intra_net") and "nvlink" not in row.words(
        "intra_net"
    ):
        fabric = _pcie(fabric, each)
    return replace(plain, device=device, fabric=fabric), rules


def _pcie(fabric: Fabric, each: int) -> Fabric:
    bus = catalogue.fabric("pcie5")
    return replace(
        fabric,
        scale_up_bandwidth=bus.scale_up_bandwidth,
        scale_up_latency=bus.scale_up_latency,
        scale_up_size=min(each, 8),
        topology=bus.topology,
        spans_nodes=False,
    )


def _stated_network(fabric: Fabric, row: Row, each: int) -> Fabric:
    """Take a network bandwidth that the row states, per node or per interface."""
    text = row.words("inter_net")
    if found := re.search(r"(\d+)\s*gbps/node", text):
        bits = float(found[1]) / each
    elif found := re.search(r"(\d+)\s*x\s*(\d+)\s*gb", text):
        bits = float(found[1]) * float(found[2]) / each
    elif found := re.search(r"(\d+)\s*gb/?p?s? rdma per gpu", text):
        bits = float(found[1])
    else:
        return fabric
    return replace(fabric, nic_bandwidth=BytesPerSecond(bits * 1e9 / 8))
