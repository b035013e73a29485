"""Groups of published runs that are judged together, by what the rows say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .truth import Row, Setting

_BLACKWELL = ("b200", "b300", "gb200", "gb300")


def group_of(one: Setting) -> str:
    """Return the source of a run with its kind, as bars are given by."""
    source = one.row.text("source").lower()
    device = one.problem.cluster.device.name
    moe = one.problem.architecture.is_moe
    tuned = one.run.workload != "pretrain" or "finetun" in source or "/ft_" in source
    if "dgxc" in source:
        if one.stack == "maxtext":
            return "dgxc jax"
        form = "fp8" if one.run.recipe else "bf16"
        return f"dgxc {'finetune' if tuned else 'pretrain'} {form}"
    if "vtrain" in source:
        return f"vtrain {'single' if one.problem.cluster.world_size <= 8 else 'multi'}"
    if "simumax" in source:
        return f"simumax {device}"
    if one.stack == "megatron-2022":
        return "sc21 + korthikanti"
    if one.stack in ("megatron-bridge", "nemo"):
        if tuned:
            return "nemo finetune"
        kind = "moe" if moe else "blackwell" if device in _BLACKWELL else "hopper"
        return f"nemo {kind}"
    if one.stack == "nanotron":
        size = "8" if one.problem.cluster.world_size <= 8 else "many"
        return f"playbook {size}"
    if one.stack == "maxtext":
        return f"maxtext {one.problem.cluster.device.vendor}"
    return one.stack


def family_of(row: Row) -> str:
    """Return a model's letters and digits; cut models belong to the whole one."""
    plain = re.sub(r" cut to.*", "", row.words("model"))
    return re.sub(r"[^a-z0-9]", "", plain).replace("llama31", "llama3")
