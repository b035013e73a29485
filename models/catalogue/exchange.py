"""Entries in and out: export to YAML, and the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cluster import Cluster, Device, Fabric
from ..errors import InputError
from .architectures import plain_architecture, read_architecture
from .machines import plain_machine, read_device, read_fabric
from .store import keep
from .text import brief, read_data
from .written import cluster_from

if TYPE_CHECKING:
    from ..architecture import Architecture
    from .store import Kind


def add(path: str | Path) -> Path:
    """Copy a model, device, fabric or cluster into the user's folder.

    Parameters
    ----------
    path
        A YAML or JSON file of the catalogue's form; its ``name`` becomes the name.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    InputError
        If the file is wrong, its name is shipped, or the folder cannot be written.
    """
    data, label = read_data(Path(path)), brief(str(path), 120)
    if not isinstance(data, dict):
        raise InputError(f"{label} must be a mapping of fields, got {brief(data)}")
    kind: Kind
    value: Architecture | Device | Fabric | Cluster
    if "layers" in data:
        kind, value = "models", read_architecture(data, label)
    elif "peak_flops" in data:
        kind, value = "devices", read_device(data, label)
    elif "scale_up_size" in data:
        kind, value = "fabrics", read_fabric(data, label)
    elif "nodes" in data:
        kind, value = "clusters", cluster_from(data, label)
    else:
        raise InputError(
            f"{label} is no entry: a model has layers, a device peak_flops, a fabric "
            "scale_up_size, a cluster nodes"
        )
    return keep(kind, value.name, to_yaml(value))


def to_yaml(entry: Architecture | Device | Fabric | Cluster) -> str:
    """Write an entry as YAML that reads back equal.

    Parameters
    ----------
    entry
        The value; a cluster is written with its device and fabric in full.
    """
    import yaml

    if isinstance(entry, Device | Fabric | Cluster):
        plain = plain_machine(entry)
    else:
        plain = plain_architecture(entry)
    text: str = yaml.dump(
        plain, Dumper=_dumper(yaml), sort_keys=False, allow_unicode=True, width=88
    )
    return text


def _dumper(yaml: Any) -> Any:
    """Return a dumper that writes no aliases, which the reader refuses."""

    class Plain(yaml.SafeDumper):  # type: ignore[misc]
        def ignore_aliases(self, data: object) -> bool:
            return True

    return Plain
