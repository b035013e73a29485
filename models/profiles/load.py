"""Profiles that come with the package, one JSON file for each generation.

A file gives for every factor its value and its source.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .profile import AttentionLaw, GemmLaw, LinkLaw, MemoryLaw, Profile, StackLaw

if TYPE_CHECKING:
    from ..cluster import Device

_LAWS: dict[str, type[Any]] = {
    "attention": AttentionLaw,
    "memory": MemoryLaw,
    "scale_up": LinkLaw,
    "network": LinkLaw,
    "stack": StackLaw,
}
#: Which file describes a device.
_GENERATION = {
    "a100-40": "ampere",
    "a100-80": "ampere",
    "h100": "hopper",
    "h200": "hopper",
    "h800": "hopper",
    "b200": "blackwell",
    "b300": "blackwell",
    "gb200": "blackwell",
    "gb300": "blackwell",
    "mi300x": "cdna3",
    "mi325x": "cdna3",
    "mi350x": "cdna4",
    "mi355x": "cdna4",
}
#: What stands in for a device without a file, by vendor.
_STAND_IN = {"nvidia": "hopper", "amd": "cdna4"}
#: Relative half-width where a stand-in's factors are used.
_STAND_IN_BAND = 0.6


def profile_of(device: Device) -> Profile:
    """Return the profile of a device.

    A device without one takes the factors of its vendor's most common generation,
    with a wide band and ``/generic`` behind the profile's name.
    """
    if generation := _GENERATION.get(device.name):
        return load_profile(generation)
    if device.vendor not in _STAND_IN:
        raise InputError(
            f"there is no profile for devices of vendor {device.vendor!r}; known: "
            f"{', '.join(_STAND_IN)}"
        )
    known = load_profile(_STAND_IN[device.vendor])
    from dataclasses import replace

    return replace(known, name=f"{known.name}/generic", band=_STAND_IN_BAND)


@cache
def load_profile(name: str) -> Profile:
    """Read one of the package's profiles by its name."""
    text = files("shardproof.models.profiles").joinpath(f"data/{name}.json").read_text()
    document = json.loads(text)
    sources: dict[str, str] = {}
    laws = {
        section: law(**_values(document[section], section, sources))
        for section, law in _LAWS.items()
    }
    gemm = {
        precision: GemmLaw(**_values(entry, f"gemm.{precision}", sources))
        for precision, entry in document["gemm"].items()
    }
    band = _values({"band": document["band"]}, "", sources)["band"]
    return Profile(
        name=document["name"],
        gemm=gemm,
        calibrated=document["calibrated"],
        band=band,
        sources=sources,
        **laws,
    )


def _values(
    entries: dict[str, Any], section: str, sources: dict[str, str]
) -> dict[str, float]:
    """Take the values of a section and note their sources."""
    for name, entry in entries.items():
        sources[f"{section}.{name}" if section else name] = entry["source"]
    return {name: float(entry["value"]) for name, entry in entries.items()}
