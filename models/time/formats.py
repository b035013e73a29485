"""Formats of matrix products: peak, efficiency and bytes of one operand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from ..cluster import Device
    from ..profiles import GemmLaw, Profile
    from ..units import FlopsPerSecond

#: Formats in the order in which one takes the place of another that a device or a
#: profile lacks.
_INSTEAD = {"nvfp4": "mxfp8", "mxfp8": "fp8", "fp8": "bf16", "bf16": "fp16"}
_WIDTHS = {"nvfp4": 0.5625, "mxfp8": 1.03125, "fp8": 1.0}


@dataclass(frozen=True)
class ProductFormat:
    """How fast a device multiplies in one format.

    Attributes
    ----------
    peak
        Dense peak, in FLOP/s.
    ceiling, saturation, grouped
        Of the profile's law, the stack's share included.
    width
        Bytes of one number of an operand, its scale included.
    """

    peak: FlopsPerSecond
    ceiling: float
    saturation: float
    grouped: float
    width: float


def product_format(device: Device, profile: Profile, name: str) -> ProductFormat:
    """Return a format, or the nearest one that the device has.

    Parameters
    ----------
    device, profile
        Peaks, and how much of them is reached.
    name
        A format with an optional recipe: ``bf16``, ``fp8``, ``fp8-block``, ``mxfp8``.
    """
    format_, _, recipe = name.partition("-")
    while format_ not in device.peak_flops:
        if format_ not in _INSTEAD:
            raise InputError(
                f"a format of matrix products is one of {', '.join(_INSTEAD)} and "
                f"fp16, got {name!r}"
            )
        format_, recipe = _INSTEAD[format_], ""
    law = _law(profile, format_, recipe)
    wide = format_ not in _WIDTHS
    share = profile.stack.products if wide else profile.stack.small_products
    return ProductFormat(
        peak=device.peak_flops[format_],
        ceiling=law.ceiling * share,
        saturation=law.saturation,
        grouped=law.grouped,
        width=_WIDTHS.get(format_, 2),
    )


def _law(profile: Profile, format_: str, recipe: str) -> GemmLaw:
    """Return a law, that of a wider format where the profile lacks one."""
    while format_ not in ("bf16", "fp16") and not (
        format_ in profile.gemm or f"{format_}-{recipe}" in profile.gemm
    ):
        format_, recipe = _INSTEAD[format_], ""
    return profile.gemm_law(format_, recipe)
