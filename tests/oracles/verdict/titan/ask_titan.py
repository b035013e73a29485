"""torchtitan's own word on a layout: meshes, heads, stages of a pipeline.

    PYTHONPATH=tests python -m oracles.verdict.titan.ask_titan CASES.json OUT.json

A case is ``{"world", "dp", "cp", "tp", "pp", "ep", "layers", "heads", "kv_heads",
"tied", "schedule", "layers_per_stage"}``; the answer is the first refusal, or null.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torchtitan.config import ParallelismConfig
from torchtitan.distributed import pipeline_parallel
from torchtitan.distributed.parallel_dims import ParallelDims
from torchtitan.models.common.decoder import Decoder

if TYPE_CHECKING:
    from collections.abc import Mapping


def _meshes(case: Mapping[str, Any]) -> ParallelDims:
    dims = ParallelDims(
        dp_replicate=1,
        dp_shard=case["dp"],
        cp=case["cp"],
        tp=case["tp"],
        pp=case["pp"],
        ep=case["ep"],
        world_size=case["world"],
    )
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=case["world"])
    try:
        dims.build_mesh()
    finally:
        dist.destroy_process_group()
    return dims


def _ask(case: Mapping[str, Any]) -> None:
    dims = _meshes(case)
    parallelism = ParallelismConfig(
        tensor_parallel_degree=case["tp"],
        pipeline_parallel_degree=case["pp"],
        context_parallel_degree=case["cp"],
        expert_parallel_degree=case["ep"],
        pipeline_parallel_schedule=case["schedule"],
        pipeline_parallel_layers_per_stage=case["layers_per_stage"],
    )
    heads = SimpleNamespace(n_heads=case["heads"], n_kv_heads=case["kv_heads"])
    model = SimpleNamespace(
        enable_weight_tying=case["tied"],
        first_attention=heads,
        layers=[SimpleNamespace() for _ in range(case["layers"])],
    )
    Decoder.Config.update_from_config(
        model, config=SimpleNamespace(parallelism=parallelism)
    )
    if case["pp"] > 1:
        found = pipeline_parallel._get_pipeline_metadata(dims, parallelism, model)
        pipeline_parallel._generate_llm_fqn_per_model_part(*found)


def ask(case: Mapping[str, Any]) -> str | None:
    """Return torchtitan's first refusal, or None."""
    try:
        _ask(case)
    except (AssertionError, ValueError, NotImplementedError, RuntimeError) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return None


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(json.dumps([ask(c) for c in asked]), encoding="utf-8")
