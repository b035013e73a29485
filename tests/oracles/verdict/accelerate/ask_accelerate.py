"""Accelerate's own word on a configuration: its classes and the accelerator itself.

    python -m oracles.verdict.accelerate.ask_accelerate CASES.json OUT.json

with ``tests`` on ``PYTHONPATH``. A case is ``{"world", "parallelism", "fsdp",
"mixed_precision"}``; the answer is ``[stage, error]`` of the first refusal, or null.
``ParallelismConfig`` with its handlers, ``FullyShardedDataParallelPlugin`` and
``Accelerator`` are made on a CPU under torch's fake process group. Replaced: the state
is told that its ranks are GPUs.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.parallelism_config import ParallelismConfig
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType
from accelerate.utils.dataclasses import (
    DeepSpeedSequenceParallelConfig,
    TorchContextParallelConfig,
)
from torch.distributed.fsdp import CPUOffload, CPUOffloadPolicy
from torch.testing._internal.distributed.fake_pg import FakeStore

if TYPE_CHECKING:
    from collections.abc import Mapping

_POLICIES = {"fsdp1": CPUOffload, "fsdp2": CPUOffloadPolicy}
_ULYSSES = ("sp_seq_length", "sp_seq_length_is_variable", "sp_attn_implementation")


def _set_device(state: PartialState) -> None:
    state.device = torch.device("cpu")


def prepare() -> None:
    """Say of the ranks that they are GPUs, of a process group that needs none."""
    PartialState._prepare_backend = lambda *args, **kwargs: (
        "fake",
        DistributedType.MULTI_GPU,
    )
    PartialState.set_device = _set_device


def _mesh(told: Mapping[str, Any]) -> ParallelismConfig:
    mesh = dict(told)
    strategy = mesh.pop("cp_comm_strategy", None)
    ulysses = {name: mesh.pop(name) for name in _ULYSSES if name in mesh}
    if strategy is not None:
        mesh["cp_handler"] = TorchContextParallelConfig(cp_comm_strategy=strategy)
    if ulysses:
        mesh["sp_handler"] = DeepSpeedSequenceParallelConfig(**ulysses)
    return ParallelismConfig(**mesh)


def _plugin(told: Mapping[str, Any]) -> FullyShardedDataParallelPlugin:
    fields = dict(told)
    if fields.get("cpu_offload") in _POLICIES:
        fields["cpu_offload"] = _POLICIES[fields["cpu_offload"]]()
    return FullyShardedDataParallelPlugin(**fields)


def ask(case: Mapping[str, Any]) -> list[str] | None:
    """Return the first stage that refuses with its words, or None."""
    before, stage = dict(os.environ), "config"
    world = case["world"]
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
    os.environ["LOCAL_RANK"] = "0"
    try:
        mesh, fsdp = case["parallelism"], case["fsdp"]
        made = None if mesh is None else _mesh(mesh)
        plugin = None if fsdp is None else _plugin(fsdp)
        stage = "groups"
        Accelerator(
            parallelism_config=made,
            fsdp_plugin=plugin,
            mixed_precision=case["mixed_precision"],
        )
    except Exception as error:
        words = " ".join(str(error).split())[:160]
        return [stage, f"{type(error).__name__}: {words}"]
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)
        if dist.is_initialized():
            dist.destroy_process_group()
        os.environ.clear()
        os.environ.update(before)
    return None


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    prepare()
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    answers = [ask(case) for case in asked]
    Path(sys.argv[2]).write_text(json.dumps(answers), encoding="utf-8")
