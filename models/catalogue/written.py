"""Models and clusters as a user writes them: a name, a file, or a specification."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from ..cluster import Cluster
from ..errors import InputError, unknown_name
from .architectures import read_architecture
from .lookup import architecture, device, fabric
from .machines import read_cluster, usual_fabric
from .store import load, names
from .text import YAML_ENDINGS, brief, read_data

if TYPE_CHECKING:
    from ..architecture import Architecture

CLUSTER_FORM = "NODESxGPUS:DEVICE"
_SPEC = re.compile(r"(\d{1,80})x(\d{1,80}):(.+)", re.IGNORECASE | re.DOTALL)


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
        return cluster_from(read_data(path), brief(spec, 120))
    try:
        return cluster_from(load("clusters", spec), f"cluster {spec}")
    except InputError as error:
        raise InputError(
            f"{error}; or write {CLUSTER_FORM}, for example 8x8:h100, or a YAML file"
        ) from None


def cluster_from(data: object, label: str) -> Cluster:
    """Build a cluster from plain data, with names looked up in the catalogue."""
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
    path = _config_in(Path(text))
    data, label = read_data(path), brief(str(path), 120)
    if path.suffix.lower() in YAML_ENDINGS or _is_ours(data):
        return read_architecture(data, label)
    from .huggingface import read_config

    return read_config(data, label, _name_of(path))


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


def _config_in(path: Path) -> Path:
    """Return a model's file: the path, or config.json if it is a folder."""
    try:
        exists, is_folder = path.exists(), path.is_dir()
    except (OSError, ValueError):
        raise InputError(f"{brief(str(path))} is no name and no file") from None
    if not exists:
        raise _no_file(path)
    if not is_folder:
        return path
    if not (path / "config.json").is_file():
        raise InputError(
            f"there is no config.json in the folder {brief(str(path), 120)}"
        )
    return path / "config.json"


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
