"""Case study: DeepSeek-V3 on 256 MI355X, published stages against proven ones.

Published layouts and step times: AMD-AGI/Primus, branch blog/moe_package_2.0 at
18e5df3b, docs/tech_blogs/moe_package_2.0/moe_package.md (a draft on a public branch):
TP1 PP16 VPP2 EP8, 2 sequences a micro-batch, 128 sequences a node, FP8, distributed
optimizer with bf16 gradients and moments. The default recomputes one layer of every
stage, 23.21 s a step; the tuned one names fifteen layers, 22.59 s. With eight layers
only it ran out of memory.

This engine prices bf16, and keeps 4-byte gradients; the comparison is of stages under
one engine, not of absolute times.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ..models.catalogue import architecture, cluster
from ..models.layout import RECOMPUTE_FULL
from ..models.problem import Problem, Training
from ..models.units import GIB
from ..solver.single import complete_layout
from ..solver.stages import StagePlan, best_stages, counts_of, skeleton, stages_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..solver.stages import Skeleton

#: Name, layout, layers recomputed in full, and measured seconds (None: out of memory).
PUBLISHED: tuple[tuple[str, str, tuple[int, ...], float | None], ...] = (
    (
        "default",
        "Et|(tt|)*14,t|(tt|)*15,tL",
        (0, *range(1, 29, 2), *range(29, 60, 2), 60),
        23.21,
    ),
    (
        "tuned",
        "Et|t|(tt|)*29,tL",
        (0, 1, 2, 4, 6, 8, 10, 12, 14, 16, 34, 36, 38, 40, 50),
        22.59,
    ),
    ("eight layers", "Et|t|(tt|)*29,tL", (0, 1, 2, 4, 6, 8, 10, 12), None),
)


def question() -> Skeleton:
    """Return the published skeleton with layers recomputed in full or not at all."""
    problem = Problem(
        architecture=replace(architecture("deepseek-v3"), mtp_layers=0),
        cluster=cluster("32x8:mi355x"),
        training=Training(
            seq_len=4096,
            global_batch=4096,
            optimizer="megatron-adam-bf16-state",
            cross_entropy="te-fused",
        ),
    )
    layout = complete_layout(problem, {"pp": 16, "vpp": 2, "ep": 8, "mbs": 2})
    return skeleton(problem, layout, codes=(0, RECOMPUTE_FULL))


def written(at: Skeleton, text: str, full: Sequence[int]) -> StagePlan:
    """Return stages as published."""
    layers = at.problem.architecture.num_layers
    levels = [RECOMPUTE_FULL if i in full else 0 for i in range(layers)]
    counts = counts_of(at, text, levels)
    return StagePlan(at, counts, float(at.times.of(counts[None])[0]), 0.0)


def line(name: str, plan: StagePlan, measured: float | None = None) -> str:
    """Write one plan: seconds, fullest rank, and what it recomputes."""
    shown = stages_of(plan)
    limit = plan.skeleton.limit
    peak = max(shown.per_rank)
    full = sum(level == "full" for level in shown.recompute)
    fits = "fits" if peak <= limit else "does not fit"
    after = f", measured {measured:.2f} s" if measured else ""
    return (
        f"{name:14s} {plan.step_time:7.3f} s, fullest rank {peak / GIB:6.1f} GiB of "
        f"{limit / GIB:.1f} ({fits}), {full} layers recomputed{after}"
    )


def main(words: Sequence[str]) -> int:
    """Print published and proven stages under one engine."""
    del words
    begun = time.process_time()
    at = question()
    for name, text, full, measured in PUBLISHED:
        print(line(name, written(at, text, full), measured), flush=True)
    best = best_stages(at, seconds=30.0, gap=0.005)
    if best is not None:
        print(line("chosen", best))
        shown = stages_of(best)
        named = [i for i, level in enumerate(shown.recompute) if level == "full"]
        print(f"  {shown.pipeline_layout}\n  recomputed in full: {named}")
        print(f"  bound {best.bound:.3f} s, gap {best.gap:.2%}")
    every = skeleton(at.problem, at.layout)
    free = best_stages(every, seconds=15.0, gap=0.005)
    if free is not None:
        print(line("any modules", free))
        print(f"  {stages_of(free).pipeline_layout}")
        print(f"  bound {free.bound:.3f} s, gap {free.gap:.2%}")
    print(f"{time.process_time() - begun:.1f} CPU s")
    return 0
