"""Collectives: a start-up time and a bandwidth at each level of the network.

A group of ``size`` ranks lies ``stride`` ranks apart. ``local`` of them share a
scale-up domain. Traffic inside runs at the domain's bandwidth, which in a mesh only
the links between members carry: (local - 1) / (n - 1) of it. Traffic between domains
runs over the network interfaces of the local members. Both go on at once, so the
slower one counts.

Letters: g size, l local, V bytes of the whole buffer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from ..cluster import Cluster
    from ..profiles import Profile
    from .work import Floats

Collective = Literal["all_reduce", "all_gather", "reduce_scatter"]


class Links:
    """Communication times of a cluster under a profile."""

    def __init__(self, cluster: Cluster, profile: Profile) -> None:
        """Take the bandwidths."""
        self._fabric = cluster.fabric
        self._domain = float(cluster.domain_size)
        self._world = float(cluster.world_size)
        self._up = profile.scale_up
        self._net = profile.network
        self._nic = self._fabric.nic_bandwidth / self._fabric.oversubscription

    def local(self, size: Floats, stride: Floats) -> Floats:
        """Return the members of a group that share a scale-up domain."""
        inside: Floats = np.minimum(np.maximum(self._domain // stride, 1.0), size)
        return inside

    def _scale_up(self, local: Floats) -> Floats:
        """Return the bandwidth that a member has inside the domain, in bytes/s."""
        whole = float(self._fabric.scale_up_bandwidth)
        if self._fabric.topology != "mesh":
            return np.full_like(local, whole)
        others = max(self._fabric.scale_up_size - 1, 1)
        return whole * np.minimum(np.maximum(local - 1, 1), others) / others

    def _latency(self, size: Floats, local: Floats) -> Floats:
        """Return start-up and hops: a ring inside, a tree between domains."""
        domains = size / local
        inside = (local - 1) * self._fabric.scale_up_latency
        between = np.ceil(np.log2(domains)) * self._fabric.nic_latency
        launch = np.where(domains > 1, self._net.launch, self._up.launch)
        latency: Floats = launch + inside + between
        return latency

    def ring(
        self, kind: Collective, size: Floats, stride: Floats, volume: Floats
    ) -> Floats:
        """Time a ring collective over a buffer of ``volume`` bytes, in seconds."""
        if not (size > 1).any():
            return np.zeros(np.broadcast_shapes(size.shape, volume.shape))
        rate, latency = self.ring_rate(kind, size, stride)
        time: Floats = volume * rate + latency
        return time

    def ring_rate(
        self, kind: Collective, size: Floats, stride: Floats
    ) -> tuple[Floats, Floats]:
        """Return seconds per byte of the buffer, and seconds before the first one.

        Each rank moves (g - 1) / g of the buffer, twice for an all-reduce. Between
        domains each domain's boundary carries it, over the interfaces of its members.
        """
        local = self.local(size, stride)
        moved = (size - 1) / size * (2 if kind == "all_reduce" else 1)
        inside = moved / (self._scale_up(local) * getattr(self._up, kind))
        between = moved / (local * (self._nic * getattr(self._net, kind)))
        if self._net.crowding:
            between = between * np.maximum(size / local / 2, 1.0) ** self._net.crowding
        slower = np.maximum(
            np.where(local > 1, inside, 0.0), np.where(size > local, between, 0.0)
        )
        return slower, np.where(size > 1, self._latency(size, local), 0.0)

    def all_to_all(self, size: Floats, stride: Floats, volume: Floats) -> Floats:
        """Time an all-to-all in which each rank holds ``volume`` bytes, in seconds."""
        if not (size > 1).any():
            return np.zeros_like(volume)
        local = self.local(size, stride)
        inside = volume * (local - 1) / size
        inside = inside / (self._scale_up(local) * self._up.all_to_all)
        between = volume * (size - local) / size / (self._nic * self._net.all_to_all)
        slower = np.maximum(inside, between)
        time: Floats = np.where(size > 1, slower + self._latency(size, local), 0.0)
        return time

    def neighbour(self, size: Floats, stride: Floats, volume: Floats) -> Floats:
        """Time sending ``volume`` bytes to the next rank of a ring, in seconds."""
        crosses = size > self.local(size, stride)
        send = np.where(crosses, self._between(volume), self._inside(volume))
        time: Floats = np.where(size > 1, send, 0.0)
        return time

    def hop(self, pp: Floats | float, volume: Floats) -> Floats:
        """Time sending ``volume`` bytes to the next pipeline stage, in seconds.

        Stages are the outermost axis: ranks W / pp apart talk. Where a domain holds
        several stages only some hops leave it, and the mean is returned.
        """
        inside = self._world <= self._domain
        leaving = 0.0 if inside else np.minimum(self._world / pp / self._domain, 1.0)
        mean = leaving * self._between(volume) + (1 - leaving) * self._inside(volume)
        time: Floats = np.where(pp > 1, mean, 0.0)
        return time

    def _inside(self, volume: Floats) -> Floats:
        """Time a message inside a domain; in a mesh it has one link."""
        links = self._fabric.scale_up_size - 1 if self._fabric.topology == "mesh" else 1
        bandwidth = self._fabric.scale_up_bandwidth * self._up.p2p / max(links, 1)
        return volume / bandwidth + self._fabric.scale_up_latency

    def _between(self, volume: Floats) -> Floats:
        """Time a message between domains."""
        return volume / (self._nic * self._net.p2p) + self._fabric.nic_latency
