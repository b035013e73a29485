"""What torch's FSDP2 holds on a rank: ``python -m oracles.fsdp_memory --cases FILE``.

Runs two steps of a transformers model under ``fully_shard`` on fake tensors and a fake
process group, with torch's own ``FSDPMemTracker`` counting. Needs the project's
``oracle`` extra, no GPU, and nothing of the product; start it in ``tests/``.

A case has ``model`` (settings of a transformers configuration), ``family`` (its model
type, ``llama`` unless said), ``ranks``, ``reduce`` (the format gradients are reduced
in), ``sequence`` and ``batch`` (tokens and samples of a step, 16 and 1 unless said).
Every decoder layer is a group, and the root is one with all that is left. Records go to
standard output.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools import fsdp2_mem_tracker as tracking
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

Case = dict[str, Any]
Record = dict[str, Any]
_WORKING = ("UNSHARDED_PARAM", "UNSHARDED_GRAD", "ALL_GATHER", "REDUCE_SCATTER")
_FAMILY, _SEQUENCE, _BATCH = "llama", 16, 1


def _start(ranks: int) -> Any:
    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
    return init_device_mesh("cpu", (ranks,))


def _sharded(case: Case, mesh: Any) -> Any:
    config = transformers.AutoConfig.for_model(
        case.get("family", _FAMILY), **case["model"], attn_implementation="eager"
    )
    model = transformers.AutoModelForCausalLM.from_config(config)
    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16, reduce_dtype=getattr(torch, case["reduce"])
    )
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def _named(snapshot: dict[Any, dict[Any, int]]) -> dict[str, int]:
    """Return bytes by kind of the only device."""
    (kinds,) = [kinds for device, kinds in snapshot.items() if device.type == "cpu"]
    return {getattr(kind, "name", str(kind)): size for kind, size in kinds.items()}


def _step(case: Case, model: Any, optimizer: Any) -> None:
    shape = case.get("batch", _BATCH), case.get("sequence", _SEQUENCE)
    tokens = torch.zeros(*shape, dtype=torch.long)
    model(input_ids=tokens, use_cache=False).logits.sum().backward()
    optimizer.step()


def record(case: Case) -> Record:
    """Return shards, and the fullest working set of a backward pass, in bytes."""
    mesh = _start(case["ranks"])
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = _sharded(case, mesh)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
        tracker = tracking.FSDPMemTracker(model, optimizer)
        with tracker:
            _step(case, model, optimizer)
            optimizer.zero_grad()
            tracker.reset_mod_stats()
            _step(case, model, optimizer)
        state = tracking._FSDPModState.PEAK_BW
        peaks = [
            _named(snapshot)
            for stats in tracker.memory_tracking.values()
            for snapshot in stats.snapshots.get(state, [])
        ]
        last = _named(tracker.get_tracker_snapshot("current"))
        states = sum(
            tensor.nbytes
            for kept in optimizer.state.values()
            for tensor in (
                t.to_local() for t in kept.values() if hasattr(t, "to_local")
            )
        )
    fullest = max(peaks, key=lambda peak: sum(peak[name] for name in _WORKING))
    return {
        "case": case,
        "params": sum(p.numel() for p in model.parameters()),
        "weights": last["SHARDED_PARAM"],
        "gradients": last["SHARDED_GRAD"],
        "states": states,
        "working": {name: fullest[name] for name in _WORKING},
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "script_sha256": hashlib.sha256(Path(__file__).read_bytes()).hexdigest(),
    }


def main() -> None:
    """Print the record of every case of a file."""
    parser = argparse.ArgumentParser(prog="fsdp_memory", description=__doc__)
    parser.add_argument("--cases", type=Path, required=True, help="JSON list of cases")
    warnings.filterwarnings("ignore")
    for entry in json.loads(parser.parse_args().cases.read_text()):
        made = {"name": entry.get("name", "case")} | record(entry["case"])
        print(json.dumps(made), flush=True)


if __name__ == "__main__":
    main()
