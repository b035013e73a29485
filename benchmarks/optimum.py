"""How close the bound of chosen stages comes, and what the proof over a space costs.

Each instance prints the simulated step time, the bound, the gap and the CPU seconds
beside its bar; CPU seconds count all threads, from the skeleton to the plan, with the
solver's library loaded before.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

from ..models.architecture import Architecture, Attention, DenseFFN, Layer, MoE
from ..models.catalogue import architecture, cluster
from ..models.layout import RECOMPUTE_FULL, recompute_code
from ..models.problem import Problem, Training
from ..solver.single import complete_layout
from ..solver.stages import best_stages, skeleton

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..models.layout import Layout

Case = tuple[Problem, "Layout", tuple[int, ...] | None]


@dataclass(frozen=True)
class Bar:
    """One instance with the gap to reach and the CPU seconds allowed."""

    name: str
    gap: float
    seconds: float
    case: Callable[[], Case]


def _llama(vpp: int) -> Case:
    problem = Problem(
        architecture=architecture("llama-3.1-405b"),
        cluster=cluster("128x8:h100"),
        training=Training(seq_len=8192, global_batch=512),
    )
    return problem, complete_layout(problem, {"tp": 8, "pp": 16, "vpp": vpp}), None


def _deepseek(vpp: int) -> Case:
    problem = Problem(
        architecture=architecture("deepseek-v3"),
        cluster=cluster("256x8:h800"),
        training=Training(seq_len=4096, global_batch=16_384),
    )
    return problem, complete_layout(problem, {"pp": 16, "vpp": vpp, "ep": 64}), None


def hybrid() -> Case:
    """Return 96 layers of four kinds in turn, with eight levels, on 8 ranks of two."""
    full = Attention(heads=32, kv_heads=8, head_dim=128)
    near = replace(full, window=1024)
    dense = DenseFFN(ffn=14_336, gated=True)
    experts = MoE(experts=16, topk=2, ffn=4096, gated=True)
    kinds = (
        Layer(attention=near, feed_forward=dense),
        Layer(attention=near, feed_forward=experts),
        Layer(attention=full, feed_forward=dense),
        Layer(attention=full, feed_forward=experts),
    )
    problem = Problem(
        architecture=Architecture(
            name="hybrid", hidden=4096, vocab=128_000, layers=kinds * 24
        ),
        cluster=cluster("8x8:h100"),
        training=Training(seq_len=8192, global_batch=256),
    )
    codes = (0, *map(recompute_code, _HYBRID_LEVELS), RECOMPUTE_FULL)
    layout = complete_layout(problem, {"pp": 8, "vpp": 2, "ep": 8, "tp": 1})
    return problem, layout, codes


_HYBRID_LEVELS = (
    "core_attn",
    "layernorm",
    "mlp",
    "moe_act",
    "moe",
    "layernorm+moe_act",
    "mlp+moe",
)
BARS = (
    Bar("405B pp16 vpp1", 0.005, 2.0, lambda: _llama(1)),
    Bar("405B pp16 vpp2", 0.02, 10.0, lambda: _llama(2)),
    Bar("DeepSeek-V3 pp16, all module sets", 0.02, 10.0, lambda: _deepseek(1)),
    Bar("DeepSeek-V3 pp16 vpp2, all module sets", 0.02, 10.0, lambda: _deepseek(2)),
    Bar("405B pp16 vpp7: 112 chunks", 0.03, 30.0, lambda: _llama(7)),
    Bar("hybrid 4 kinds x 8 levels pp8 vpp2", 0.03, 30.0, hybrid),
)


def measure(bar: Bar) -> str:
    """Solve one instance and write its line."""
    problem, layout, codes = bar.case()
    begun = time.process_time()
    at = skeleton(problem, layout, codes=codes)
    left = bar.seconds - (time.process_time() - begun)
    plan = best_stages(at, seconds=left, gap=bar.gap)
    spent = time.process_time() - begun
    if plan is None:
        return f"{bar.name:40s} no plan fits in {spent:.1f} s"
    return (
        f"{bar.name:40s} {plan.step_time:8.3f} s, bound {plan.bound:8.3f} s, gap "
        f"{plan.gap:6.2%} (bar {bar.gap:.1%}) in {spent:5.1f} CPU s "
        f"(bar {bar.seconds:.0f})"
    )


def proof() -> str:
    """Compare the proof over a whole space with simulating all of it."""
    from ..solver.optimum import optimum
    from ..solver.optimum.goals import Goal
    from ..solver.optimum.search import layout_of
    from ..solver.optimum.variants import variant
    from ..solver.space import load_space

    problem = Problem(
        architecture=architecture("llama-3.1-405b"),
        cluster=cluster("128x8:h100"),
        training=Training(seq_len=8192, global_batch=512),
    )
    at = variant(problem, load_space(), Goal())
    begun = time.process_time()
    at.scores.bounds(at.columns)
    bounding = time.process_time() - begun
    number = len(at.bounds)
    layouts = [layout_of(at, i) for i in range(number)]
    begun = time.process_time()
    for start in range(0, number, 4096):
        at.scores.simulated(layouts[start : start + 4096])
    everything = time.process_time() - begun
    begun = time.process_time()
    found = optimum(problem)
    whole = time.process_time() - begun
    scored = min(found.proof.scored, number)
    begun = time.process_time()
    at.scores.simulated(layouts[:scored])
    scoring = time.process_time() - begun
    share = (bounding + scoring) / everything
    return (
        f"proof over {number:,} configurations of 405B on 1,024: {scored:,} simulated; "
        f"bounds {bounding:.2f} and simulations {scoring:.2f} CPU s, {share:.1%} of "
        f"simulating all, {everything:.1f} CPU s (bar 20 %); with enumeration and "
        f"memory {whole:.1f} CPU s"
    )


def main(words: Sequence[str]) -> int:
    """Print every instance beside its bar."""
    parser = argparse.ArgumentParser(prog="shardproof bench optimum")
    parser.add_argument("--only", help="instances whose name holds this text")
    parser.add_argument("--no-proof", action="store_true", help="stages alone")
    given = parser.parse_args(list(words))
    import_module("ortools.sat.python.cp_model")
    for bar in BARS:
        if not given.only or given.only.lower() in bar.name.lower():
            print(measure(bar), flush=True)
    if not given.no_proof and not given.only:
        print(proof(), flush=True)
    return 0
