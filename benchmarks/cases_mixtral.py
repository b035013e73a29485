"""Case study: Mixtral 8x22B on 4 x 8 MI355X against plans of Primus.

The reference is TP1 PP4 VPP2 EP8. Primus at fd1eeab (AMD-AGI/Primus, tuning agent and
projection) puts TP1 PP4 EP8 with 2 sequences a micro-batch and selective recomputation
first among its seeds, and TP1 PP4 VPP7 EP8 with 1 first among its whole plan; its paper
reports +27 % over the reference after proposals of a language model. All plans are
timed by this engine; sequences of 4,096 tokens and a batch of 256 are this page's.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..models.catalogue import architecture, cluster
from ..models.layout import recompute_code
from ..models.problem import Problem, Training
from ..models.units import GIB
from ..solver.optimum import optimum
from ..solver.single import complete_layout, evaluate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..solver.optimum import Found

REFERENCES = (
    ("reference", {"pp": 4, "vpp": 2, "ep": 8}),
    (
        "tuner's seed",
        {"pp": 4, "ep": 8, "mbs": 2, "recompute": recompute_code("core_attn")},
    ),
    ("tuner's plan", {"pp": 4, "vpp": 7, "ep": 8}),
)


def question() -> Problem:
    """Return Mixtral 8x22B on 32 MI355X."""
    return Problem(
        architecture=architecture("mixtral-8x22b"),
        cluster=cluster("4x8:mi355x"),
        training=Training(seq_len=4096, global_batch=256),
    )


def main(words: Sequence[str]) -> int:
    """Print the references, the proven optimum, and the best chosen stages."""
    del words
    begun, problem = time.process_time(), question()
    limit = problem.cluster.device.hbm_bytes / GIB
    base = 0.0
    for name, axes in REFERENCES:
        choice = evaluate(problem, complete_layout(problem, axes))
        speed = choice.projection.tokens_per_s_per_gpu
        base = base or speed
        print(
            f"{name:14s} {speed:8.1f} tokens/s/GPU ({speed / base - 1:+.1%}), "
            f"{choice.memory.peak_bytes / GIB:.1f} GiB of {limit:.1f}"
        )
    found = optimum(problem, top=3, stages=True, seconds=30.0)
    for answer in found.answers:
        print(_line(answer, base))
    proof = found.proof
    print(
        f"{proof.status} over {proof.feasible:,} configurations that fit, of "
        f"{proof.legal:,}: none is better than {proof.bound:.1f}; {proof.scored} were "
        "simulated"
    )
    print(f"{time.process_time() - begun:.1f} CPU s (bar 60)")
    return 0


def _line(answer: Found, base: float) -> str:
    one = answer.choice or answer.stages
    assert one is not None
    at, speed = one.layout, one.projection.tokens_per_s_per_gpu
    how = answer.stages.pipeline_layout if answer.stages else "whole configuration"
    return (
        f"{'chosen':14s} {speed:8.1f} tokens/s/GPU ({speed / base - 1:+.1%}), "
        f"tp {at.tp} pp {at.pp} vpp {at.vpp} cp {at.cp} ep {at.ep} mbs {at.mbs}, {how}"
    )
