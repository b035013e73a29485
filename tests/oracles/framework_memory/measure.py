"""The golden record of a case."""

from __future__ import annotations

import gc
import hashlib
from pathlib import Path
from typing import Any

import megatron.core
import torch
from megatron.core.transformer.moe import moe_utils
from megatron.core.transformer.multi_token_prediction import MTPLossLoggingHelper
from torch._subclasses.fake_tensor import FakeTensorMode

from . import device, engine, engine_formats, model, optimizers, routing, state
from .counting import Kept, items_of
from .device import CudaToCpu
from .settings import Case, dtype_of, is_narrow

_FAKE = FakeTensorMode(allow_non_fake_inputs=True)
Record = dict[str, Any]
_PER_LAYER = {
    "saved_bytes": "per_layer_saved",
    "params": "per_layer_params",
    "weight_copy_bytes": "per_layer_weight_copies",
    "scaling_state_bytes": "per_layer_scaling_state",
}


def script_sha256() -> str:
    """Return the hash of what decides the figures: every module beside this one."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def install() -> None:
    """Replace what needs a device in megatron-core, once."""
    model.install()
    routing.install()
    gc.freeze()  # the frameworks' modules need no look at every collection


def _run(case: Case) -> Record:
    """Return the kept tensors and the parameters of one forward pass of the rank.

    With a format narrower than 16 bits also copies of weights, and scaling's state.
    """
    # Losses of earlier cases are held there for the log.
    moe_utils.get_moe_layer_wise_logging_tracker().clear()
    MTPLossLoggingHelper.tracker.clear()
    device.use_capability(case.get("cc", 9))
    engine_formats.forget()
    with _FAKE, CudaToCpu():
        built = model.build(case)
        length, batch = case["s"] // (case.get("cp") or 1), case["b"]
        tokens, places = (torch.zeros(batch, length, dtype=torch.long) for _ in "12")
        inputs, mask = [tokens, places], None
        unfused = case.get("attn", "unfused") == "unfused"
        if case.get("impl") != "te" and unfused:
            mask = torch.ones(1, 1, length, length, dtype=torch.bool)
            inputs.append(mask)
        if not case.get("pre", True):
            rows = length // (case["tp"] if case.get("sp") else 1)
            shape, dtype = (rows, batch, case["h"]), dtype_of(case)
            built.set_input_tensor(torch.empty(shape, dtype=dtype, requires_grad=True))
        given: Record = {}
        if case.get("post", True):
            given = {"labels": tokens, "loss_mask": torch.ones(batch, length)}
            inputs += given.values()
        with Kept(built, inputs) as kept:
            out = built(tokens, places, mask, **given)
        gc.collect()
        found: Record = {
            "params": sum(parameter.numel() for parameter in built.parameters()),
            "items": kept.items(),
        }
        found["saved_bytes"] = _bytes(found["items"])
        del out
        if is_narrow(case):
            found["weight_copies"] = items_of(engine_formats.weight_copies(built))
            state = items_of(engine_formats.scaling_state(built))
            found["weight_copy_bytes"] = _bytes(found["weight_copies"])
            found["scaling_state_bytes"] = _bytes(state)
        return found


def _bytes(items: list[Record]) -> int:
    return sum(item["n"] * item["nbytes"] for item in items)


def record(case: Case) -> Record:
    """Return what the case's rank keeps of a step, or holds as its state."""
    if not {"distopt", "rule"} & set(case):
        return _kept(case)
    with _FAKE, CudaToCpu():
        held = optimizers if "rule" in case else state
        return {"case": case} | held.record(case)


def _kept(case: Case) -> Record:
    """Run the case, and with twice the layers for what one layer more adds.

    A pattern of layers given as a list has no one layer more.
    """
    found = _run(case)
    if not isinstance(case.get("moe_freq"), list):
        longer = _run({**case, "layers": 2 * case["layers"]})
        added = case["layers"] // (case.get("pp") or 1)
        for total, each in _PER_LAYER.items():
            if total in found:
                found[each] = (longer[total] - found[total]) // added
    return {"case": case} | found


def origin() -> Record:
    """Return what made the figures: versions, and the hash of these modules."""
    return {
        "framework": "megatron-core",
        "version": megatron.core.__version__,
        "transformer_engine": engine.VERSION,
        "torch": torch.__version__,
        "script_sha256": script_sha256(),
    }
