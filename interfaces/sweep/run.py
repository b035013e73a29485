"""A sweep: chunks that are not done are worked on, every answer kept as it comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..files import to_json, write
from .runners import runner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from .chunks import Chunk

SWEEP = "shardproof/sweep@1"


def sweep(
    chunks: Sequence[Chunk],
    folder: Path,
    *,
    engine: str = "local",
    workers: int = 2,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, Any]:
    """Plan every chunk and return all answers, in the order of the chunks.

    Parameters
    ----------
    chunks
        What to plan.
    folder
        Where answers are kept, one file a chunk; those that are there are not made
        again, so a sweep that was killed goes on where it was.
    engine
        ``local``, ``ray`` or ``slurm``.
    workers
        Chunks worked on at a time.
    progress
        Called with a text, what is done, and how much there is.
    """
    kept = folder / "chunks"
    kept.mkdir(parents=True, exist_ok=True)
    left = [c for c in chunks if _read(kept, c) is None]
    work = runner(engine)
    done = len(chunks) - len(left)
    if left:
        for chunk, answer in work(left, workers, folder):
            write(kept / f"{chunk.name}.json", to_json(answer))
            done += 1
            if progress:
                progress("plans", done, len(chunks))
    return {"schema": SWEEP, "plans": [_read(kept, chunk) for chunk in chunks]}


def _read(folder: Path, chunk: Chunk) -> dict[str, Any] | None:
    """Return a kept answer; a file that is no JSON is made again."""
    try:
        found: Any = json.loads((folder / f"{chunk.name}.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "chunk" in found else None
