"""DeepSpeed's own word on a configuration: its classes, groups and engines.

    PYTHONPATH=tests python -m oracles.verdict.deepspeed.ask_deepspeed IN.json OUT.json

A case is ``{"config", "world", "tp", "pp", "layers", "heads", "kv_heads", "experts",
"optimizer", "seq"}``, ``config`` being DeepSpeed's JSON; the answer is ``[stage,
error]`` of the first refusal, or null. ``deepspeed.initialize`` builds the engine of
a few linear layers on a CPU, under torch's fake process group, as the first and as the
last rank; tensor and pipeline ranks come in through DeepSpeed's own topology.
Replaced: the device says that it has fp16, no operator is compiled for it, and engines
collect no garbage.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import json
import logging
import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

os.environ["DS_ACCELERATOR"] = "cpu"
os.environ.setdefault("LOCAL_RANK", "0")

import deepspeed
import deepspeed.comm.comm as comm
import torch
import torch.distributed as dist
from deepspeed.accelerator import get_accelerator
from deepspeed.module_inject.auto_ep_config import (
    MoELayerSpec,
    parse_autoep_config,
    validate_autoep_post_detection,
)
from deepspeed.pipe import LayerSpec, PipelineModule
from deepspeed.runtime.config import DeepSpeedConfig
from deepspeed.runtime.pipe.topology import (
    PipelineParallelGrid,
    PipeModelDataParallelTopology,
)
from deepspeed.runtime.sequence_parallel.ulysses_sp import (
    UlyssesSPAttentionHF,
    UlyssesSPDataLoaderAdapter,
)
from deepspeed.utils import groups
from torch.testing._internal.distributed.fake_pg import FakeStore

if TYPE_CHECKING:
    from collections.abc import Mapping

_WIDTH = 8
_OPTIMIZERS = {
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
}


def prepare() -> None:
    """Say of the device what a GPU would."""
    device = type(get_accelerator())
    device.is_fp16_supported = lambda self: True
    comm.init_deepspeed_backend = lambda *args, **kwargs: None
    gc.collect = lambda generation=2: 0  # most of an engine's time otherwise


def _enter(world: int, rank: int) -> None:
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    deepspeed.init_distributed(
        dist_backend="fake", auto_mpi_discovery=False, verbose=False
    )


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
    comm.cdb = None
    groups._release_process_group_references(None)


def _topology(case: Mapping[str, Any]) -> PipeModelDataParallelTopology:
    tp, pp = case["tp"], case["pp"]
    share = max(1, case["world"] // (tp * pp))
    return PipeModelDataParallelTopology(num_pp=pp, num_mp=tp, num_dp=share)


def _experts(case: Mapping[str, Any]) -> None:
    """Ask about the experts of one layer, as found in a model."""
    told = parse_autoep_config(case["config"].get("expert_parallel", {}))
    layer = dict.fromkeys(MoELayerSpec.__dataclass_fields__)
    layer |= {"num_experts": case["experts"], "moe_module_name": "moe"}
    validate_autoep_post_detection(told, [MoELayerSpec(**layer)])


def _sequence_group(case: Mapping[str, Any]) -> Any:
    sizes = case["config"].get("data_parallel_size", 1), case["sp"]
    mesh = comm.initialize_mesh_device(sizes, ("data_parallel", "sequence_parallel"))
    return mesh.get_group(mesh_dim="sequence_parallel")


def _batch(case: Mapping[str, Any]) -> None:
    """Cut one sample of a sequence's length over the ranks."""
    sample = torch.zeros(1, case["seq"], dtype=torch.long)
    names = ("input_ids", "position_ids", "labels")
    loader = UlyssesSPDataLoaderAdapter(
        [{name: sample.clone() for name in names}],
        sp_rank=0,
        sp_group=_sequence_group(case),
        sp_world_size=case["sp"],
        device="cpu",
    )
    next(loader)


def _attention(case: Mapping[str, Any]) -> None:
    UlyssesSPAttentionHF(
        attn=None,
        batch_size=1,
        attn_head_count=case["heads"],
        attn_head_size=_WIDTH,
        kv_head_count=case["kv_heads"],
        num_hidden_layers=case["layers"],
        process_group=_sequence_group(case),
        seq_length_is_variable=True,
    )


def _engine(case: Mapping[str, Any]) -> None:
    told: dict[str, Any] = {"config": copy.deepcopy(case["config"])}
    if case["pp"] > 1:
        layers = [LayerSpec(torch.nn.Linear, _WIDTH, _WIDTH)] * case["layers"]
        model = PipelineModule(
            layers=layers, topology=_topology(case), loss_fn=torch.nn.MSELoss()
        )
    else:
        model = torch.nn.Sequential(
            torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.Linear(_WIDTH, _WIDTH)
        )
        if case["tp"] > 1:
            told["mpu"] = PipelineParallelGrid(topology=_topology(case))
    optimizer = _OPTIMIZERS[case["optimizer"]](model.parameters())
    deepspeed.initialize(model=model, optimizer=optimizer, **told)


def _config(case: Mapping[str, Any]) -> None:
    share = case["world"] // (case["tp"] * case["pp"] * case["sp"])
    mpu = SimpleNamespace(get_data_parallel_world_size=lambda: share)
    DeepSpeedConfig(copy.deepcopy(case["config"]), mpu=mpu)


def _grid(case: Mapping[str, Any]) -> None:
    PipelineParallelGrid(topology=_topology(case))


def ask(case: Mapping[str, Any]) -> list[str] | None:
    """Return the first stage that refuses with its words, or None."""
    stages = [("config", _config), ("groups", _grid)]
    if case["sp"] > 1:
        stages += [("groups", _attention), ("first forward", _batch)]
    if case["experts"]:
        stages.append(("groups", _experts))
    stages.append(("build", _engine))
    for rank in sorted({0, case["world"] - 1}):
        for stage, what in stages:
            try:
                _enter(case["world"], rank)
                what(case)
            except Exception as error:
                words = " ".join(str(error).split())[:160]
                return [stage, f"{type(error).__name__}: {words}"]
            finally:
                _leave()
    return None


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    prepare()
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with contextlib.redirect_stdout(None):
        answers = [ask(case) for case in asked]
    Path(sys.argv[2]).write_text(json.dumps(answers), encoding="utf-8")
