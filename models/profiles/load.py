"""Profiles that come with the package, one JSON file for each layer.

A file gives for every factor its value and its source. ``index.json`` names the
layers of each profile and the profile of each device.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..errors import InputError, unknown_name
from .layer import KINDS
from .layer_file import layer_of
from .profile import assemble

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from ..cluster import Device
    from .layer import Kind, Layer
    from .profile import Profile


def profile_of(device: Device, *, stack: str = "", cluster: str = "") -> Profile:
    """Return the profile of a device.

    A device without one takes the factors of its vendor's most common device, with a
    wide band and ``/generic`` behind the profile's name.

    Parameters
    ----------
    device
        Looked up by its name.
    stack, cluster
        Names of layers to take instead of the device's own.
    """
    index = _index()
    name = index["devices"].get(device.name)
    generic = name is None
    if generic:
        if device.vendor not in index["stand_in"]:
            raise InputError(
                f"there is no profile for devices of vendor {device.vendor!r}; known: "
                f"{', '.join(index['stand_in'])}"
            )
        name = index["stand_in"][device.vendor]
    known = load_profile(name, stack=stack, cluster=cluster)
    if not generic:
        return known
    from dataclasses import replace

    band = max(known.band, float(index["stand_in_band"]))
    return replace(known, name=f"{known.name}/generic", band=band)


@cache
def load_profile(name: str, *, stack: str = "", cluster: str = "") -> Profile:
    """Read one of the package's profiles by its name; layers given replace its own."""
    layers = _index()["profiles"].get(name)
    if layers is None:
        raise unknown_name("profile", name, _index()["profiles"])
    chosen = layers | ({"stack": stack} if stack else {})
    chosen = chosen | ({"cluster": cluster} if cluster else {})
    found = [load_layer(kind, chosen[kind]) for kind in KINDS]
    own = chosen == layers and found[0].name in (name, f"{name}-prior")
    return assemble(found, found[0].title if own else "")


def profile_names() -> tuple[str, ...]:
    """Return the names of the package's profiles, sorted."""
    return tuple(sorted(_index()["profiles"]))


@cache
def load_layer(kind: Kind, name: str) -> Layer:
    """Read one of the package's layers."""
    if name not in layer_names(kind):
        raise unknown_name(f"{kind} layer", name, layer_names(kind))
    return layer_of(json.loads((_data() / kind / f"{name}.json").read_text()), name)


@cache
def layer_names(kind: Kind) -> tuple[str, ...]:
    """Return the names of the package's layers of a kind, sorted."""
    found = (entry.name for entry in (_data() / kind).iterdir())
    return tuple(sorted(n.removesuffix(".json") for n in found if n.endswith(".json")))


@cache
def _index() -> Any:
    return json.loads((_data() / "index.json").read_text())


def _data() -> Traversable:
    return files("shardproof.models.profiles") / "data"
