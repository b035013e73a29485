"""Differences of profiles and layers, and layers put over one another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .layer import Layer
    from .profile import Profile


def differences(
    first: Mapping[str, float], second: Mapping[str, float]
) -> dict[str, tuple[float | None, float | None]]:
    """Return the factors that differ, with both values; None where one has none."""
    return {
        name: (first.get(name), second.get(name))
        for name in sorted({*first, *second})
        if first.get(name) != second.get(name)
    }


def merge(below: Layer, over: Layer, name: str) -> Layer:
    """Put a layer over another of the same kind: where both have an entry, its counts.

    Raises
    ------
    InputError
        If the layers are of different kinds.
    """
    if below.kind != over.kind:
        raise InputError(
            f"layers of one kind can be merged, got a {below.kind} and a {over.kind} "
            "layer; a profile takes one of each kind without merging"
        )
    return replace(
        over,
        name=name,
        version=1,
        calibrated=below.calibrated and over.calibrated,
        factors={**below.factors, **over.factors},
        sources={**below.sources, **over.sources},
        domain={**below.domain, **over.domain},
        bands={**below.bands, **over.bands},
        provenance=(*below.provenance, *over.provenance),
        tables={**below.tables, **over.tables},
        left_out={**below.left_out, **over.left_out},
    )


def check(layer: Layer, profile: Profile) -> None:
    """Check that a layer fits into a profile and that its kernels can be read.

    Raises
    ------
    InputError
        If a factor is unknown or out of its range, or a table is damaged.
    """
    from .surfaces import kernel_of

    profile.with_layer(layer)
    for name, document in layer.tables.items():
        kernel = kernel_of(document)
        if set(kernel.domain) | set(kernel.fixed) != set(kernel.law.sizes):
            raise InputError(
                f"the domain and the fixed sizes of {name} must name every size of "
                f"{kernel.law.name}: {', '.join(kernel.law.sizes)}"
            )
