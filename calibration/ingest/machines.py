"""Devices as the sources of measurements spell them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.errors import InputError
from ...models.profiles.surfaces.law import Machine

if TYPE_CHECKING:
    from ...models.cluster import Device

#: Device of the catalogue by a word of the vendor's name, the first that fits.
_SPELLINGS = (
    ("gb300", "gb300"),
    ("gb200", "gb200"),
    ("b300", "b300"),
    ("b200", "b200"),
    ("h200", "h200"),
    ("h800", "h800"),
    ("h100", "h100"),
    ("a100", "a100-80"),
    ("v100", "v100-32"),
    ("mi300x", "mi300x"),
    ("mi325x", "mi325x"),
    ("mi355x", "mi355x"),
)
#: Streaming multiprocessors or compute units: the vendors' data sheets.
UNITS = {
    "a100-80": 108,
    "h100": 132,
    "h200": 132,
    "h800": 132,
    "b200": 148,
    "b300": 148,
    "gb200": 152,
    "gb300": 152,
    "v100-32": 80,
    "mi300x": 304,
    "mi325x": 304,
    "mi355x": 256,
}
#: Bytes of a number with its share of the scale.
WIDTHS = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "fp8-block": 1.0, "nvfp4": 0.5625}


def device_named(text: str) -> str:
    """Return the catalogue's name of a device from a vendor's.

    Raises
    ------
    InputError
        If no known device is named.
    """
    words = text.lower()
    for word, name in _SPELLINGS:
        if word in words:
            return name
    raise InputError(
        f"no known device is named in {text!r}; known: "
        f"{', '.join(word for word, _ in _SPELLINGS)}"
    )


def machine_of(device: str, precision: str) -> Machine:
    """Return the peaks of a device for kernels of a number format."""
    from ...models import catalogue

    known: Device = catalogue.device(device)
    return Machine(
        flops=float(known.peak_flops[precision.split("-")[0]]),
        bandwidth=float(known.hbm_bandwidth),
        units=UNITS[device],
        width=WIDTHS[precision],
    )


def link_of(device: str) -> Machine:
    """Return the scale-up link of a device, for collectives inside a node."""
    from ...models import catalogue

    known = catalogue.device(device)
    fabric = catalogue.fabric(known.fabric)
    return Machine(
        flops=1.0, bandwidth=float(fabric.scale_up_bandwidth), units=UNITS[device]
    )
