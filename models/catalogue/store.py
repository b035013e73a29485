"""Where entries lie: shipped JSON files and the user's folder of YAML files.

An entry is a file of its own, so that one is read without the others. Shipped names
cannot be taken by users, so that a name in an answer means the same everywhere.
"""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError, unknown_name
from .text import brief, parse_json, read_data

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Kind = Literal["models", "devices", "fabrics", "clusters"]
KINDS: tuple[Kind, ...] = ("models", "devices", "fabrics", "clusters")
#: Names: lower case with dashes and dots, so that none can leave its folder.
NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
_USER_ENDINGS = (".yaml", ".yml", ".json")


@cache
def _shipped() -> Traversable:
    return files("shardproof.models.catalogue").joinpath("data")


def home() -> Path:
    """Return the user's folder: ``$SHARDPROOF_HOME``, or ``~/.config/shardproof``.

    Raises
    ------
    InputError
        If there is no home folder and the variable is not set.
    """
    if given := os.environ.get("SHARDPROOF_HOME"):
        return Path(given)
    try:
        return Path.home() / ".config" / "shardproof"
    except RuntimeError:
        raise InputError(
            "there is no home folder; set SHARDPROOF_HOME to a folder of your own"
        ) from None


def shipped_names(kind: Kind) -> tuple[str, ...]:
    """Names of the entries that come with the package."""
    found = (file.name for file in _shipped().joinpath(kind).iterdir())
    return tuple(sorted(n.removesuffix(".json") for n in found if n.endswith(".json")))


def user_files(kind: Kind) -> dict[str, Path]:
    """Files of the user's folder by the name of their entry."""
    try:
        found = sorted((home() / "catalogue" / kind).iterdir())
    except (OSError, InputError):
        return {}
    return {
        path.stem: path
        for path in found
        if path.suffix in _USER_ENDINGS and NAME.fullmatch(path.stem)
    }


def names(kind: Kind) -> tuple[str, ...]:
    """Names of all entries of a kind, shipped ones and the user's.

    Raises
    ------
    InputError
        If there is no such kind.
    """
    if kind not in KINDS:
        raise unknown_name("kind of entry", str(kind), KINDS)
    return tuple(sorted({*shipped_names(kind), *user_files(kind)}))


def load(kind: Kind, name: str) -> Any:
    """Return an entry as plain data.

    Raises
    ------
    InputError
        If there is none of that name, or the user's file cannot be read.
    """
    wanted = name.strip().lower()
    if NAME.fullmatch(wanted):
        file = _shipped().joinpath(kind, f"{wanted}.json")
        if file.is_file():
            return parse_json(file.read_text("utf-8"), f"{kind}/{wanted}")
        if path := user_files(kind).get(wanted):
            return read_data(path)
    raise unknown_name(kind.removesuffix("s"), name, names(kind))


@cache
def _shipped_table(name: str) -> dict[str, Any]:
    text = _shipped().joinpath(f"{name}.json").read_text("utf-8")
    found: dict[str, Any] = parse_json(text, name)
    return found


def table(name: str, *, shipped_only: bool = False) -> dict[str, Any]:
    """Return a shipped table with the user's rows of the same name put over it.

    The user's table is ``NAME.yaml`` in ``home()``; ``shipped_only`` leaves it out.

    Raises
    ------
    InputError
        If the user's table is no mapping of mappings.
    """
    found = _shipped_table(name)
    if shipped_only:
        return found
    try:
        path = home() / f"{name}.yaml"
        if not path.is_file():
            return found
    except (OSError, InputError):
        return found
    given = read_data(path)
    if not isinstance(given, dict) or not all(
        isinstance(row, dict) for row in given.values()
    ):
        raise InputError(
            f"{brief(str(path), 120)} must give for each name a mapping of fields"
        )
    return {**found, **{k: {**found.get(k, {}), **row} for k, row in given.items()}}


def keep(kind: Kind, name: str, text: str) -> Path:
    """Write an entry into the user's folder, whole or not at all.

    Raises
    ------
    InputError
        If the name is shipped or no name, or the folder cannot be written.
    """
    if not NAME.fullmatch(name):
        raise InputError(
            f"a name has lower-case letters, digits, dots and dashes, got {brief(name)}"
        )
    if name in shipped_names(kind):
        raise InputError(
            f"{name} is one of the {kind} that come with shardproof; give yours "
            "another name"
        )
    folder = home() / "catalogue" / kind
    path, draft = folder / f"{name}.yaml", folder / f".{name}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, "utf-8")
        draft.replace(path)
    except OSError as error:
        raise InputError(
            f"cannot write {brief(str(path), 120)}: {error.strerror}"
        ) from None
    return path
