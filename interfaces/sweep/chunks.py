"""What a sweep consists of: one chunk of work for each model on each cluster.

A chunk is text and numbers alone, so that every engine can carry it, and its file is
named by what is in it: what is done is done, whoever did it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ...models.errors import InputError
from ..request import Request

if TYPE_CHECKING:
    from pathlib import Path

_MOST_BYTES = 1_000_000
MOST_CHUNKS = 100_000
_KEYS = {
    "models": list,
    "clusters": list,
    "seq_len": int,
    "global_batch": int,
    "dialect": str,
    "precision": str,
    "optimizer": str,
    "space": str,
    "top": int,
}
_NEEDED = ("models", "clusters", "seq_len", "global_batch")


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """One plan to make: the words of a request."""

    model: str
    cluster: str
    seq_len: int
    global_batch: int
    dialect: str = "megatron@0.16"
    precision: str = "bf16"
    optimizer: str = "megatron-adam"
    space: str = "default"
    top: int = 1

    @property
    def name(self) -> str:
        """Name of its file: a hash of everything it asks."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def answer_of(chunk: Chunk) -> dict[str, Any]:
    """Plan one chunk, and return what it asked with the answer's document.

    Bad input is an answer too, so that one of many does not end the others.
    """
    from ...solver.plan import plan
    from ..document import answer

    asked = asdict(chunk)
    words = {k: v for k, v in asked.items() if k != "top"}
    try:
        request = Request(**words)
        found = plan(request.problem(), request.in_space(), top=chunk.top)
    except InputError as error:
        return {"chunk": asked, "error": str(error)}
    return {"chunk": asked, "answer": answer(found)}


def chunks_of(sweep: dict[str, Any]) -> list[Chunk]:
    """Return the chunks of a sweep file: every model on every cluster, in order."""
    rest = {k: v for k, v in sweep.items() if k not in ("models", "clusters")}
    found = [
        Chunk(model=model, cluster=cluster, **rest)
        for model in sweep["models"]
        for cluster in sweep["clusters"]
    ]
    if not 1 <= len(found) <= MOST_CHUNKS:
        raise InputError(
            f"a sweep has 1 to {MOST_CHUNKS:,} pairs of model and cluster, got "
            f"{len(found):,}"
        )
    return list(dict.fromkeys(found))


def read_sweep(path: Path) -> dict[str, Any]:
    """Read a sweep file: models, clusters, and for all of them what `plan` takes.

    Raises
    ------
    InputError
        If it cannot be read, lacks a key, or has one that is unknown or of another
        kind.
    """
    import yaml

    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"a sweep has at most {_MOST_BYTES:,} bytes, got {path}")
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        reason = str(error).splitlines()[0][:120]
        raise InputError(f"cannot read the sweep {path}: {reason}") from None
    if not isinstance(found, dict) or not set(_NEEDED) <= set(found):
        raise InputError(
            f"a sweep has {', '.join(_NEEDED)}, got "
            f"{', '.join(map(str, found))[:80] if isinstance(found, dict) else found}"
        )
    for key, value in found.items():
        _check(key, value)
    return found


def _check(key: Any, value: Any) -> None:
    kind = _KEYS.get(key)
    if kind is None:
        raise InputError(f"a sweep has {', '.join(_KEYS)}, got {str(key)[:40]!r}")
    texts = not isinstance(value, list) or all(isinstance(v, str) for v in value)
    if not isinstance(value, kind) or isinstance(value, bool) or not texts:
        wanted = "a list of names" if kind is list else f"of kind {kind.__name__}"
        raise InputError(f"{key} of a sweep is {wanted}, got {str(value)[:60]!r}")
