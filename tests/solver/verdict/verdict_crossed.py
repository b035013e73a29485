"""Configurations crossed from verdicts of another hand: parts of one in another.

The cases in ``tests/solver/rules/data`` were not made by the generators beside this
file; crossing them reaches corners that those were not told about.
"""

from __future__ import annotations

import copy
import gzip
import json
import random
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verdict_draws import ANYTHING

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).parents[1] / "rules" / "data" / "megatron_core_0.16.1.json.gz"
_RUN = ("world", "global_batch", "micro_batch", "seq")
#: Parts of a configuration that mean something together.
_PARTS = (
    ("tp", "sequence_parallel", "etp"),
    ("pp", "vpp", "overlap_p2p_comm", "microbatch_group_size_per_vp_stage"),
    ("recompute_granularity", "recompute_method", "recompute_num_layers"),
    ("cuda_graph_impl", "cuda_graph_scope"),
    ("cp", "cp_comm_type", "hierarchical_context_parallel_sizes"),
    ("fp8", "fp8_recipe", "first_last_layers_bf16"),
    ("moe_token_dispatcher_type", "moe_flex_dispatcher_backend"),
    ("num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage"),
)


@cache
def _known() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(gzip.decompress(DATA.read_bytes()))
    return found


def _cross(rng: random.Random, case: dict[str, Any], other: dict[str, Any]) -> None:
    """Take one part of another case: its model, its run, some axes, or one."""
    kind = rng.choice(("arch", "run", "part", "one", "one", "any", "any"))
    if kind == "arch":
        case["arch"] = copy.deepcopy(other["arch"])
    elif kind == "run":
        name = rng.choice(_RUN)
        case[name] = other[name]
    elif kind == "part":
        for name in rng.choice(_PARTS):
            case["config"][name] = copy.deepcopy(other["config"][name])
    elif kind == "one":
        name = rng.choice(sorted(other["config"]))
        case["config"][name] = copy.deepcopy(other["config"][name])
    else:
        name = rng.choice(sorted(ANYTHING))
        case["config"][name] = rng.choice(ANYTHING[name])


def crossed_cases(seed: int, number: int) -> Iterator[dict[str, Any]]:
    """Make cases, most of them one to four crossings away from a recorded one."""
    known = _known()
    legal = [case for case in known if case["legal"]]
    for at in range(number):
        rng = random.Random(f"crossed/{seed}/{at}")
        base = rng.choice(legal if rng.random() < 0.8 else known)
        case = copy.deepcopy({k: base[k] for k in ("arch", "config", *_RUN)})
        for _ in range(rng.choice((1, 1, 2, 3, 4))):
            _cross(rng, case, rng.choice(known))
        yield case | {"kind": "crossed", "id": f"crossed/{seed}/{at}"}
