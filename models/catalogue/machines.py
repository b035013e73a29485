"""Devices, fabrics and clusters as plain data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from ..cluster import Cluster, Device, Fabric, Format, Topology
from ..errors import InputError
from ..units import Bytes, BytesPerSecond, FlopsPerSecond, Seconds
from .architectures import changed_fields
from .node import Node

if TYPE_CHECKING:
    from collections.abc import Callable


def _sources(node: Node) -> dict[str, str]:
    if "sources" not in node:
        node.skip("sources")
        return {}
    inner = node.node("sources")
    return {name: inner.text(name) for name in inner.names()}


def read_device(data: object, label: str) -> Device:
    """Build a device from plain data; ``hbm_bytes`` may be text such as ``80GiB``.

    Raises
    ------
    InputError
        If a field is missing, unknown, of a wrong type or out of range.
    """
    node = Node(data, label)
    peaks = node.node("peak_flops")
    for name in peaks.names():
        if name not in get_args(Format):
            raise InputError(
                f"{peaks.label} is given by format, one of "
                f"{', '.join(get_args(Format))}, got {name!r}"
            )
    found = Device(
        name=node.text("name"),
        vendor=node.text("vendor"),
        hbm_bytes=Bytes(node.size("hbm_bytes")),
        nominal_hbm_gb=node.number("nominal_hbm_gb"),
        peak_flops={n: FlopsPerSecond(peaks.number(n)) for n in peaks.names()},
        hbm_bandwidth=BytesPerSecond(node.number("hbm_bandwidth")),
        host_bandwidth=BytesPerSecond(node.number("host_bandwidth")),
        power_watts=node.maybe_number("power_watts"),
        price_per_hour=node.maybe_number("price_per_hour"),
        fabric=node.text("fabric", ""),
        sources=_sources(node),
    )
    node.done()
    return found


def read_fabric(data: object, label: str) -> Fabric:
    """Build a fabric from plain data.

    Raises
    ------
    InputError
        If a field is missing, unknown, of a wrong type or out of range.
    """
    node = Node(data, label)
    found = Fabric(
        name=node.text("name", ""),
        scale_up_size=node.whole("scale_up_size"),
        scale_up_bandwidth=BytesPerSecond(node.number("scale_up_bandwidth")),
        scale_up_latency=Seconds(node.number("scale_up_latency")),
        topology=node.choice("topology", get_args(Topology)),  # type: ignore[arg-type]
        nic_bandwidth=BytesPerSecond(node.number("nic_bandwidth")),
        nic_latency=Seconds(node.number("nic_latency")),
        nics_per_node=node.whole("nics_per_node"),
        oversubscription=node.number("oversubscription", 1.0),
        spans_nodes=node.flag("spans_nodes", False),
        sources=_sources(node),
    )
    node.done()
    return found


def fitted(fabric: Fabric, gpus_per_node: int) -> Fabric:
    """Return a fabric as it is in nodes of fewer devices than it was made for.

    A scale-up domain ends at its node unless it spans nodes. A smaller mesh has
    fewer links, all of the same bandwidth; a switch gives each device all of its
    own. Network interfaces shrink with the devices.
    """
    if fabric.spans_nodes or gpus_per_node >= fabric.scale_up_size:
        return fabric
    whole, part = fabric.scale_up_size, gpus_per_node
    bandwidth = float(fabric.scale_up_bandwidth)
    if fabric.topology == "mesh" and part > 1:
        bandwidth *= (part - 1) / (whole - 1)
    return replace(
        fabric,
        scale_up_size=part,
        scale_up_bandwidth=BytesPerSecond(bandwidth),
        nics_per_node=max(1, fabric.nics_per_node * part // whole),
    )


def _named(node: Node, field: str, read: Any, find: Any) -> Any:
    """Read a field that is either a name of the catalogue or a mapping."""
    found = node.get(field)
    if isinstance(found, str):
        return find(found)
    return read(found, f"{field} of {node.label}")


def read_cluster(
    data: object,
    label: str,
    device: Callable[[str], Device],
    fabric: Callable[[str], Fabric],
) -> Cluster:
    """Build a cluster from plain data.

    Parameters
    ----------
    data
        What a YAML or JSON file holds: nodes, gpus_per_node, and device and fabric
        either by name or written out. Without a fabric it is the device's own.
    label
        Names the file in messages.
    device, fabric
        Find one by its name.

    Raises
    ------
    InputError
        If a field is missing, unknown, of a wrong type or out of range.
    """
    node = Node(data, label)
    chosen: Device = _named(node, "device", read_device, device)
    nodes = node.whole("nodes", least=0)
    gpus = node.whole("gpus_per_node", least=0)
    if "fabric" in node:
        joined: Fabric = _named(node, "fabric", read_fabric, fabric)
        if isinstance(node.peek("fabric"), str):
            joined = fitted(joined, max(gpus, 1))
    else:
        node.skip("fabric")
        joined = usual_fabric(chosen, max(gpus, 1), fabric)
    if "oversubscription" in node:
        joined = replace(joined, oversubscription=node.number("oversubscription"))
    found = Cluster(
        name=node.text("name", f"{nodes}x{gpus}:{chosen.name}"),
        nodes=nodes,
        gpus_per_node=gpus,
        device=chosen,
        fabric=joined,
        source=node.text("source", ""),
    )
    node.skip("oversubscription")
    node.done()
    return found


def usual_fabric(
    device: Device, gpus_per_node: int, fabric: Callable[[str], Fabric]
) -> Fabric:
    """Return the fabric that joins a device unless another is given.

    Raises
    ------
    InputError
        If the device names none.
    """
    if not device.fabric:
        raise InputError(
            f"device {device.name} names no fabric; give the device the field fabric, "
            "or the cluster"
        )
    return fitted(fabric(device.fabric), gpus_per_node)


def plain_machine(value: Device | Fabric | Cluster) -> dict[str, Any]:
    """Return a device, fabric or cluster as plain data that reads back equal."""
    found = changed_fields(value)
    if isinstance(value, Cluster):
        found["device"] = plain_machine(value.device)
        found["fabric"] = plain_machine(value.fabric)
        return found
    for name in ("peak_flops", "sources"):
        if name in found:
            found[name] = dict(found[name])
    if not found.get("sources"):
        found.pop("sources", None)
    return found
