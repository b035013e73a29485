"""Architectures, devices and clusters by name, and readers of users' files.

Names are lower case with dashes. ``model`` and ``cluster`` take what a user writes:
a name, a file, or for clusters ``NODESxGPUS:DEVICE``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cluster import Cluster, Device, Fabric
from ..errors import InputError, unknown_name
from .architectures import (
    Published,
    plain_architecture,
    read_architecture,
    read_published,
)
from .machines import (
    plain_machine,
    read_cluster,
    read_device,
    read_fabric,
    usual_fabric,
)
from .node import Node
from .store import KINDS as KINDS
from .store import Kind as Kind
from .store import home as home
from .store import keep, load, table
from .store import names as names
from .text import YAML_ENDINGS, brief, read_data

if TYPE_CHECKING:
    from ..architecture import Architecture

CLUSTER_FORM = "NODESxGPUS:DEVICE"
_SPEC = re.compile(r"(\d{1,80})x(\d{1,80}):(.+)", re.IGNORECASE | re.DOTALL)


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


def cluster(spec: str) -> Cluster:
    """Return a cluster from what a user writes.

    Parameters
    ----------
    spec
        ``NODESxGPUS:DEVICE`` such as ``8x8:h100``, a name of the catalogue, or a
        YAML file.

    Raises
    ------
    InputError
        If it is none of these, or a count is 0.
    """
    if match := _SPEC.fullmatch(spec.strip()):
        nodes, gpus = int(match[1]), int(match[2])
        chosen = device(match[3])
        return Cluster(
            name=f"{nodes}x{gpus}:{chosen.name}",
            nodes=nodes,
            gpus_per_node=gpus,
            device=chosen,
            fabric=usual_fabric(chosen, max(gpus, 1), fabric),
        )
    if ":" in spec and not _is_path(spec):
        raise InputError(
            f"a cluster is written as {CLUSTER_FORM}, for example 8x8:h100, got "
            f"{brief(spec)}"
        )
    if _is_path(spec):
        path = Path(spec)
        return _cluster(read_data(path), brief(spec, 120))
    try:
        return _cluster(load("clusters", spec), f"cluster {spec}")
    except InputError as error:
        raise InputError(
            f"{error}; or write {CLUSTER_FORM}, for example 8x8:h100, or a YAML file"
        ) from None


def _cluster(data: object, label: str) -> Cluster:
    return read_cluster(data, label, device, fabric)


def model(text: str) -> Architecture:
    """Return an architecture from what a user writes.

    Parameters
    ----------
    text
        A name of the catalogue; a Hugging Face ``config.json`` or the folder that
        holds it; a YAML or JSON file of the catalogue's own form. A name wins over
        a folder of that name; write ``./NAME`` for the folder.

    Raises
    ------
    InputError
        If it is none of these or the file is wrong.
    """
    if text.strip().lower() in names("models"):
        return architecture(text)
    if not _is_path(text):
        raise unknown_name("model", text, names("models"))
    path = Path(text)
    try:
        if not path.exists():
            raise _no_file(path)
        if path.is_dir():
            path = path / "config.json"
            if not path.is_file():
                raise InputError(
                    f"there is no config.json in the folder {brief(text, 120)}"
                )
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{brief(text)} is no name and no file") from None
    data, label = read_data(path), brief(str(path), 120)
    if path.suffix.lower() in YAML_ENDINGS or _is_ours(data):
        return read_architecture(data, label)
    from .huggingface import read_config

    return read_config(data, label, _name_of(path))


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
        kind, value = "clusters", _cluster(data, label)
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


def _is_path(text: str) -> bool:
    """Whether a text is meant as a file: it has a separator, an ending, or exists."""
    if not text.strip():
        return False
    if "/" in text or "\\" in text:
        return True
    if text.lower().endswith((*YAML_ENDINGS, ".json")):
        return True
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _no_file(path: Path) -> InputError:
    """Say that a file is missing, with the name that may have been meant."""
    last = path.name.lower()
    missing = f"there is no file {brief(str(path), 120)}"
    if path.suffix.lower() not in (*YAML_ENDINGS, ".json"):
        near = get_close_matches(last, names("models"), n=3, cutoff=0.5)
        if near:
            return InputError(f"{missing}; did you mean {' or '.join(near)}?")
    return InputError(missing)


def _is_ours(data: object) -> bool:
    return isinstance(data, dict) and "layers" in data and "model_type" not in data


def _name_of(path: Path) -> str:
    """Name a model after its folder, or after its file if that is not config.json."""
    stem = (
        path.stem if path.name.lower() != "config.json" else path.absolute().parent.name
    )
    return re.sub(r"[^a-z0-9.]+", "-", stem.lower()).strip("-.")[:64]
