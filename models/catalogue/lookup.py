"""Entries of the catalogue by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .architectures import Published, read_architecture, read_published
from .machines import read_device, read_fabric
from .node import Node
from .store import load, table

if TYPE_CHECKING:
    from ..architecture import Architecture
    from ..cluster import Device, Fabric


def architecture(name: str) -> Architecture:
    """Return an architecture of the catalogue.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    return read_architecture(load("models", name), f"model {name}")


def published(name: str) -> Published | None:
    """Return the parameter total that a model's makers give, None if there is none.

    Raises
    ------
    InputError
        If there is no such model.
    """
    return read_published(Node(load("models", name), f"model {name}"))


def device(name: str) -> Device:
    """Return a device of the catalogue, with power and price of the table ``costs``.

    Raises
    ------
    InputError
        If there is none of that name, or the user's ``costs.yaml`` is wrong.
    """
    found = read_device(load("devices", name), f"device {name}")
    row = table("costs").get(found.name)
    if row is None:
        return found
    node = Node(row, f"{found.name} of the table costs")
    changes: dict[str, Any] = {
        field: node.number(field)
        for field in ("power_watts", "price_per_hour")
        if field in node
    }
    said = {field: node.text("source", "the user's table") for field in changes}
    node.skip("source", "power_watts", "price_per_hour")
    node.done()
    return replace(found, **changes, sources={**found.sources, **said})


def fabric(name: str) -> Fabric:
    """Return a fabric of the catalogue.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    return read_fabric(load("fabrics", name), f"fabric {name}")
