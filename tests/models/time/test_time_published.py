"""Projections beside published measurements, none of which is fitted.

Rows: model, cluster, sequence length, global batch, layout, measured seconds.
Sources: NVIDIA/dgxc-benchmarking at commit 741c886 (READMEs of llama3.1,
nemo_megatron) and 8f5cbb3 (grok1), BF16, NeMo with Megatron-Core; mosaicml/llm-foundry
benchmarking README at commit 8c8dd48; Korthikanti et al. 2022, table 5.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest
from time_cases import one

from shardproof.models.catalogue import architecture, cluster
from shardproof.models.layout import RECOMPUTE_FULL, SHARDINGS
from shardproof.models.problem import Problem, Training
from shardproof.models.profiles import profile_of
from shardproof.models.stages import stages
from shardproof.models.time import TimeModel

Row = tuple[str, str, int, int, dict[str, int], float]

_70B = {"tp": 4, "pp": 4, "vpp": 5, "cp": 2}
_405B = {"tp": 8, "pp": 8, "vpp": 8, "cp": 2}
_FULL = {"recompute": RECOMPUTE_FULL}
_FSDP = {"sharding": SHARDINGS.index("zero-3")}
_NONE = {"sharding": 0, "recompute": RECOMPUTE_FULL, "tp": 8}

DGXC: list[Row] = [
    ("llama-3.1-8b", "1x8:h100", 8192, 128, {"cp": 2}, 12.27),
    ("llama-3.1-8b", "16x8:h100", 8192, 2048, {"cp": 2}, 12.33),
    ("llama-3.1-70b", "8x8:h100", 8192, 128, _70B, 14.66),
    ("llama-3.1-70b", "256x8:h100", 8192, 4096, _70B, 14.66),
    ("llama-3.1-405b", "64x8:h100", 8192, 256, _405B, 19.78),
    ("llama-3.1-405b", "72x8:h100", 8192, 252, {**_405B, "pp": 9, "vpp": 7}, 17.5),
    ("gpt3-175b", "16x8:h100", 2048, 256, {"tp": 4, "pp": 8, "vpp": 6}, 8.309),
    (
        "grok-1",
        "64x8:h100",
        8192,
        1024,
        {"tp": 4, "pp": 8, "vpp": 8, "cp": 2, "ep": 8},
        21.01,
    ),
]
OTHERS: list[Row] = [
    ("mpt-7b", "1x8:a100-80", 2048, 96, {**_FSDP, "mbs": 6}, 5.2951),
    ("mpt-30b", "64x8:h100", 2048, 4096, {**_FSDP, **_FULL, "mbs": 8}, 7.7431),
    ("megatron-22b", "1x8:a100-80", 2048, 4, {**_NONE, "mbs": 4}, 1.42),
    ("gpt3-175b", "8x8:a100-80", 2048, 64, {**_NONE, "pp": 8, "vpp": 3}, 18.13),
    ("megatron-530b", "35x8:a100-80", 2048, 280, {**_NONE, "pp": 35, "vpp": 3}, 49.05),
]


def error(row: Row) -> float:
    """Return projected over measured time, minus one."""
    model, machine, seq_len, batch, axes, measured = row
    problem = Problem(
        architecture=architecture(model),
        cluster=cluster(machine),
        training=Training(seq_len=seq_len, global_batch=batch),
    )
    layout: dict[str, Any] = {"sharding": 1, "mbs": 1, "pp": 1, "vpp": 1, **axes}
    tp, pp = layout.get("tp", 1), layout["pp"]
    layout["sp"] = int(tp > 1 and "recompute" not in axes)
    layout["schedule"] = int(layout["vpp"] > 1)
    world = problem.cluster.world_size
    layout["dp"] = world // (tp * pp * layout.get("cp", 1))
    layout["edp"] = world // (pp * layout.get("ep", 1))
    layout["m"] = batch // (layout["dp"] * layout["mbs"])
    layout["split"] = next(
        s for s in range(3) if stages(problem.architecture, s, pp, layout["vpp"])
    )
    found = TimeModel(problem, profile_of(problem.cluster.device)).refine(one(**layout))
    return float(found.step_time[0] / measured - 1)


@pytest.mark.parametrize("row", DGXC + OTHERS, ids=lambda r: f"{r[0]}@{r[1]}")
def test_measurement_lies_in_the_band(row: Row) -> None:
    assert abs(error(row)) < profile_of(cluster(row[1]).device).band


def test_megatron_on_hopper_is_close() -> None:
    errors = [abs(error(row)) for row in DGXC]
    assert median(errors) < 0.05
    assert max(errors) < 0.12
