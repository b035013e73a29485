"""What a row ran: problem, layout and run, with every rule that was used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...models.problem import Problem, Training
from ...models.time import model_flops
from ...models.time.run import Run, run_of
from .architecture import architecture_of
from .layout import Sizes, batch_of, layout_of
from .machine import cluster_of
from .measured import Measured, measured
from .words import (
    attention_of,
    capacity_of,
    precision_of,
    release_of,
    sharded_over,
    stack_of,
    workload_of,
)

if TYPE_CHECKING:
    from ...models.layout import Layout
    from .row import Row

#: Bytes of gradients that a stack reduces: 4 unless it reduces in 16 bits.
_OPTIMIZERS = {
    "maxtext": "adam-bf16",
    "megatron-deepspeed": "megatron-adam-bf16-grads",
    "megatron-bridge": "megatron-adam-bf16-grads",
    "nemo": "megatron-adam-bf16-grads",
    "primus": "primus-adam",
}
_LOSSES = {"megatron-bridge": "te-fused", "nemo": "te-fused", "primus": "te-fused"}
_LEAST_USE, _MOST_USE = 0.10, 0.80


@dataclass(frozen=True)
class Setting:
    """One row in the product's terms.

    Attributes
    ----------
    row
        The row.
    problem, layout, run
        What was trained, how it was cut, and how the stack ran it.
    stack, release
        Framework, and its release where the row names one.
    sharded_over
        Ranks that weights are sharded over where the row says so, else None.
    assumed
        Names of the inference rules that were used.
    excluded
        Names of the exclusion rules that hold for the row alone.
    measured
        What the row measured.
    """

    row: Row
    problem: Problem
    layout: Layout
    run: Run
    stack: str
    release: str
    sharded_over: int | None
    assumed: tuple[str, ...]
    excluded: tuple[str, ...]
    measured: Measured


def setting(row: Row) -> Setting:
    """Return what a row ran.

    Raises
    ------
    Unstated
        If it lacks what a prediction needs.
    """
    cluster, assumed = cluster_of(row)
    arch, used = architecture_of(row)
    stack = stack_of(row)
    sizes = Sizes(row, cluster.world_size)
    batch, micro, batch_rules = batch_of(row, sizes.dp)
    seq_len = row.whole("seq_len")
    precision, recipe, precision_rules = precision_of(row)
    if precision not in cluster.device.formats:
        precision = "fp16"
    run = Run(
        workload=workload_of(row),
        attention=attention_of(row, stack),
        recipe=recipe,
        capacity_factor=capacity_of(row),
        tp_overlap=_overlaps(row, stack),
    )
    problem = Problem(
        architecture=arch,
        cluster=cluster,
        training=Training(
            seq_len=min(seq_len or 4096, 2**26),
            global_batch=batch,
            precision=precision,
            optimizer=_optimizer(row, stack),
            cross_entropy=_loss(row, stack),  # type: ignore[arg-type]
        ),
    )
    layout, layout_rules, faults = layout_of(row, problem, sizes, micro, stack, run)
    found = measured(row, problem)
    rules = [*assumed, *used, *batch_rules, *precision_rules, *layout_rules]
    rules += ["stack", "attention"] + ([] if seq_len else ["seq-len"])
    return Setting(
        row=row,
        problem=problem,
        layout=layout,
        run=run,
        stack=stack,
        release=release_of(row),
        sharded_over=sharded_over(row),
        assumed=tuple(sorted(set(rules))),
        excluded=tuple(sorted({*faults, *_row_faults(row, found, problem)})),
        measured=found,
    )


def _optimizer(row: Row, stack: str) -> str:
    if stack == "llm-foundry" and "pure" in row.words("precision"):
        return "megatron-adam-bf16-grads"
    return _OPTIMIZERS.get(stack, "megatron-adam")


def _loss(row: Row, stack: str) -> str:
    text = row.words("extras", "framework")
    if "te fused cross-entropy" in text:
        return "te-fused"
    if stack in ("torchtitan", "maxtext") and "eager" not in text:
        return "native-fused"
    return _LOSSES.get(stack, "unfused")


def _overlaps(row: Row, stack: str) -> bool:
    """Return whether tensor-parallel traffic runs behind products."""
    text = row.words("extras")
    if "overlap off" in text or "vanilla tp" in text:
        return False
    if "async tp" in text or "tp-comm-overlap" in text:
        return True
    return run_of(stack).tp_overlap


def _row_faults(row: Row, found: Measured, problem: Problem) -> set[str]:
    faults = set()
    if row.text("oom").lower() not in ("", "0", "false"):
        faults.add("failed")
    text = row.words("extras", "notes")
    if found.step_time_s is None:
        faults.add("no-measurement")
    else:
        faults |= _unlikely(row, found.step_time_s, problem)
    if found.disagrees:
        faults.add("fields-disagree")
    if "tier d" in text:
        faults.add("tier-d")
    if "1-node/proc" in text and "sparse-gmm'" in text:
        faults.add("launcher")
    if "real routing" in text or "(real" in text:
        faults.add("real-data")
    if "functional (untuned)" in text or "not for time" in text:
        faults.add("untuned")
    if "not named in the artifact" in text:
        faults.add("unnamed-device")
    return faults


def _unlikely(row: Row, step_time: float, problem: Problem) -> set[str]:
    """Name the rule that a utilisation outside what runs reach breaks."""
    training, cluster = problem.training, problem.cluster
    flops = model_flops(problem.architecture, training.seq_len, training.global_batch)
    peak = cluster.device.peak_flops[training.precision] * cluster.world_size
    use = flops / (step_time * peak)
    if use < _LEAST_USE and stack_of(row) == "nanotron":
        return {"utilisation"}
    eight = "fp8" in row.words("precision") or "fp4" in row.words("precision")
    light = workload_of(row) == "lora"
    return {"impossible"} if use > _MOST_USE and not (eight or light) else set()
