"""Bytes that no tensor of the model explains: context, workspaces, communicators.

Each is charged to the device, for a device's size is what torch reports as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..architecture import Architecture


@dataclass(frozen=True)
class Constant:
    """A named number of bytes with its source."""

    name: str
    bytes: int
    source: str


CONTEXT = Constant(
    "device context",
    551_000_000,
    "aiconfigurator: non-framework memory observed, 551 MB",
)
COMMUNICATORS = Constant(
    "communicators",
    392_000_000,
    "aiconfigurator: NCCL buffers of a node of 4 or 8 devices, 392 MB",
)
CUBLAS = Constant(
    "cuBLAS workspace",
    33_555_456,
    "torch: default workspace of cuBLAS on Hopper, 33,555,456 bytes",
)
CUBLAS_GROUPED = Constant(
    "cuBLAS workspaces of grouped products",
    4 * 33_555_456,
    "TransformerEngine: grouped matrix products use four more workspaces",
)


def constants(architecture: Architecture) -> tuple[Constant, ...]:
    """Return the constants of a model."""
    shared = (CONTEXT, COMMUNICATORS, CUBLAS)
    return (*shared, CUBLAS_GROUPED) if architecture.is_moe else shared
