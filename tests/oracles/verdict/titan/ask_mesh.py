"""The word of any torchtitan since 0.2 on a mesh: ``ParallelDims`` alone.

    PYTHONPATH=tests python -m oracles.verdict.titan.ask_mesh CASES.json OUT.json

A case is ``{"world", "dp", "cp", "tp", "pp", "ep", "etp"}``; the answer is the first
refusal, or null. Of experts' tensor parallelism 0.3 knows nothing, and is not told.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torchtitan.distributed.parallel_dims import ParallelDims

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIELDS = {field.name for field in dataclasses.fields(ParallelDims)}


def ask(case: Mapping[str, Any]) -> str | None:
    """Return torchtitan's first refusal, or None."""
    told = {n: case[n] for n in ("cp", "tp", "pp", "ep", "etp") if n in _FIELDS}
    world = case["world"]
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
    try:
        dims = ParallelDims(
            dp_replicate=1, dp_shard=case["dp"], world_size=world, **told
        )
        dims.build_mesh()
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    finally:
        dist.destroy_process_group()
    return None


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(json.dumps([ask(c) for c in asked]), encoding="utf-8")
