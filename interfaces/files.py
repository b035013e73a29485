"""Files out, whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def to_json(document: Mapping[str, Any]) -> str:
    """Write a document as JSON text; a number that is not finite is a defect."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def prepare(folder: str | None) -> Path | None:
    """Make the folder of results before any work is done for it.

    Raises
    ------
    InputError
        If it cannot be made or written to.
    """
    if folder is None:
        return None
    if not folder.strip() or "\0" in folder:
        raise InputError(f"--out must be a folder, got {folder[:60]!r}")
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise _unwritable(path, error) from None
    return path


def write(path: Path, text: str | Iterable[str]) -> None:
    """Write text to a file, whole or not at all.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    parts = (text,) if isinstance(text, str) else text
    write_bytes(path, (p.encode("utf-8", "backslashreplace") for p in parts))


def write_bytes(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file beside its place and move it there, so that none is half-written.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files private; results are as readable as any new file.
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        Path(name).unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> InputError:
    reason = (error.strerror or str(error)).lower()
    return InputError(
        f"--out must be a folder that can be written to, got {str(path)[:120]!r}: "
        f"{reason}"
    )
