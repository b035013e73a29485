"""Devices, fabrics and clusters: what a step runs on."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from .errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .units import Bytes, BytesPerSecond, FlopsPerSecond, Seconds

Topology = Literal["switch", "mesh", "none"]
Format = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "mxfp4", "nvfp4"]


@dataclass(frozen=True, kw_only=True)
class Device:
    """One accelerator as a process sees it.

    Attributes
    ----------
    name
        Lower case with dashes.
    vendor
        ``nvidia`` or ``amd``.
    hbm_bytes
        What a process can use: torch's ``total_memory``, in bytes.
    nominal_hbm_gb
        The vendor's figure, in GB.
    peak_flops
        Dense peak by number format, in FLOP/s, without sparsity.
    hbm_bandwidth
        Peak memory bandwidth, in bytes/s.
    host_bandwidth
        Link to the host, one way, in bytes/s.
    power_watts, price_per_hour
        Board power in W; price in the user's currency, None if not given.
    fabric
        Name of the catalogue's fabric that joins such devices unless another is given.
    sources
        For each figure where it comes from.
    """

    name: str
    vendor: str
    hbm_bytes: Bytes
    nominal_hbm_gb: float
    peak_flops: Mapping[str, FlopsPerSecond]
    hbm_bandwidth: BytesPerSecond
    host_bandwidth: BytesPerSecond
    power_watts: float | None = None
    price_per_hour: float | None = None
    fabric: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the figures at birth."""
        for name in ("hbm_bytes", "hbm_bandwidth", "host_bandwidth"):
            if getattr(self, name) <= 0:
                raise InputError(
                    f"{name} of device {self.name} must be positive, got "
                    f"{getattr(self, name)}"
                )
        if not self.peak_flops or min(self.peak_flops.values()) <= 0:
            raise InputError(
                f"device {self.name} needs a positive peak_flops for each format"
            )
        object.__setattr__(self, "peak_flops", MappingProxyType(dict(self.peak_flops)))
        object.__setattr__(self, "sources", MappingProxyType(dict(self.sources)))

    @property
    def formats(self) -> tuple[str, ...]:
        """Number formats with a matrix unit."""
        return tuple(self.peak_flops)


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """How devices are joined.

    Attributes
    ----------
    name
        Lower case with dashes, empty if it is not of the catalogue.
    scale_up_size
        Devices in one scale-up domain (an NVLink or xGMI node, an NVL72 rack).
    scale_up_bandwidth
        Per device, one way, all links together, in bytes/s.
    scale_up_latency
        Of one hop, in seconds.
    topology
        ``switch`` (any group sees the full bandwidth), ``mesh`` (a group of g of n
        sees (g-1)/(n-1) of it) or ``none``.
    nic_bandwidth
        Network bandwidth per device, one way, in bytes/s.
    nic_latency
        Of one message between nodes, in seconds.
    nics_per_node
        Network interfaces (rails) of a node.
    oversubscription
        Spine bandwidth is the rails' bandwidth divided by this, at least 1.
    spans_nodes
        Whether a scale-up domain joins nodes (a rack) instead of ending at one.
    sources
        For each figure where it comes from.
    """

    name: str = ""
    scale_up_size: int
    scale_up_bandwidth: BytesPerSecond
    scale_up_latency: Seconds
    topology: Topology
    nic_bandwidth: BytesPerSecond
    nic_latency: Seconds
    nics_per_node: int
    oversubscription: float = 1.0
    spans_nodes: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the figures at birth."""
        if self.scale_up_size < 1 or self.nics_per_node < 1:
            raise InputError(
                "scale_up_size and nics_per_node of a fabric are at least 1, got "
                f"{self.scale_up_size} and {self.nics_per_node}"
            )
        if min(self.scale_up_bandwidth, self.nic_bandwidth) <= 0:
            raise InputError("bandwidths of a fabric must be positive")
        if self.oversubscription < 1:
            raise InputError(
                f"oversubscription is at least 1, got {self.oversubscription}"
            )
        object.__setattr__(self, "sources", MappingProxyType(dict(self.sources)))


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """``nodes`` nodes of ``gpus_per_node`` equal devices on one fabric.

    ``source`` says where a named cluster is described.
    """

    name: str
    nodes: int
    gpus_per_node: int
    device: Device
    fabric: Fabric
    source: str = ""

    def __post_init__(self) -> None:
        """Check the counts at birth."""
        for label, value in (("nodes", self.nodes), ("GPUs", self.gpus_per_node)):
            if value < 1:
                raise InputError(
                    f"a cluster needs at least 1 of {label}, got {value}; write it "
                    "as NODESxGPUS:DEVICE, for example 8x8:h100"
                )
        if self.world_size > 2**20:
            raise InputError(
                f"a cluster has at most {2**20:,} devices, got {self.world_size:,}"
            )

    @property
    def world_size(self) -> int:
        """Number of devices."""
        return self.nodes * self.gpus_per_node

    @property
    def domain_size(self) -> int:
        """Devices that a process group can join without leaving scale-up links."""
        return min(self.fabric.scale_up_size, self.world_size)
