"""The layout of a row, by the rules for fields that it leaves unstated."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from ...models.layout import (
    PRECISIONS,
    RECOMPUTE_FULL,
    SCHEDULES,
    SHARDINGS,
    SPLITS,
    Layout,
)
from ...models.layout import recompute_code as code_of
from ...models.stages import layers_per_chunk
from .memory import fits
from .rules import Unstated
from .words import recompute_of, sharding_of

if TYPE_CHECKING:
    from ...models.problem import Problem
    from ...models.time import Run
    from .row import Row

#: The layout's precision, which decides bytes, by the recipe of the products.
_FORMATS = {
    "fp8": "fp8-tensor",
    "fp8-block": "fp8-block",
    "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
}
_OLD = ("megatron-deepspeed", "megatron-2022", "llm-foundry")


class Sizes:
    """Sizes of a row with the rules that filled them in."""

    def __init__(self, row: Row, devices: int) -> None:
        """Read tp, pp, cp, ep and etp; sizes that are not stated are 1.

        Raises
        ------
        Unstated
            If neither tp nor pp is stated.
        """
        if row.whole("tp") is None and row.whole("pp") is None:
            raise Unstated("no-layout")
        self.rules: list[str] = []
        self.faults: list[str] = []
        self.tp, self.pp = row.whole("tp") or 1, row.whole("pp") or 1
        self.cp, self.ep = row.whole("cp") or 1, row.whole("ep") or 1
        self.etp = row.whole("etp") or 1
        for name in ("ep", "etp"):
            if row.whole(name) is None:
                self.rules.append(name)
        if devices % (self.tp * self.pp * self.cp):
            self.faults.append("does-not-divide")
            # More stages than devices are a slip of the pen: siblings have one.
            self.pp = self.pp if self.pp <= devices else 1
        model = self.tp * self.pp * self.cp
        self.dp = max(1, devices // model)
        if devices % (self.etp * self.ep * self.pp):
            self.faults.append("does-not-divide")
        self.edp = max(1, devices // (self.etp * self.ep * self.pp))
        self.rules.append("dp")


def batch_of(row: Row, dp: int) -> tuple[int, int | None, list[str]]:
    """Return the batch, the micro-batch or None, and the rules used.

    Raises
    ------
    Unstated
        If neither is stated.
    """
    batch, micro = row.whole("global_batch"), row.whole("micro_batch")
    if batch is not None:
        return min(batch, 2**26), micro, []
    if micro is None:
        raise Unstated("no-batch")
    return min(micro * dp * (row.whole("grad_accum") or 1), 2**26), micro, ["batch"]


def layout_of(
    row: Row,
    problem: Problem,
    sizes: Sizes,
    micro: int | None,
    stack: str,
    run: Run,
) -> tuple[Layout, list[str], list[str]]:
    """Return the layout of a row, the rules used, and the fields that are wrong."""
    fused, frozen = run.attention != "unfused", run.workload == "lora"
    rules, faults = list(sizes.rules), list(sizes.faults)
    layers = problem.architecture.num_layers
    pp, vpp = sizes.pp, row.whole("vpp")
    said = row.words("extras").replace("interleaved when vpp", "")
    if vpp in (None, 1) and pp > 1 and "interleave" in said:
        vpp = 2
        rules.append("vpp-interleaved")
    if vpp is None or pp == 1:
        vpp = 1
        rules.append("vpp")
    if pp > layers:
        faults.append("layers")
        pp = layers
    if pp * vpp > layers:
        vpp = layers // pp
        rules.append("vpp")
    sp = row.flag("sp")
    if sp is None:
        sp = sizes.tp > 1 and stack not in _OLD
        rules.append("sp")
    sharding = sharding_of(row)
    if not row.text("zero_stage"):
        rules.append("sharding-none")
    known, used = recompute_of(row, fused=fused)
    rules += used
    plain = Layout(
        tp=sizes.tp,
        pp=pp,
        vpp=vpp,
        cp=sizes.cp,
        ep=sizes.ep,
        etp=sizes.etp,
        mbs=micro or 1,
        sp=int(sp and sizes.tp > 1),
        schedule=SCHEDULES.index(_schedule(row, vpp)),
        split=_split(layers, pp, vpp),
        recompute=known or 0,
        sharding=SHARDINGS.index("zero-1" if sharding == "unsure" else sharding),
        precision=PRECISIONS.index(_FORMATS.get(run.recipe, "bf16")),
        dp=sizes.dp,
        edp=sizes.edp,
        m=1,
    )
    plain = _with_m(plain, problem)
    if sharding == "unsure":
        rules.append("sharding-memory")
        plain = _sharded(plain, problem)
    if micro is None:
        rules.append("mbs")
        plain = _micro(plain, problem)
    if known is None and frozen:
        rules.append("recompute-lora")
    elif known is None:
        rules.append("recompute-memory")
        plain = _recomputed(plain, problem, fused)
    if problem.training.global_batch % (plain.mbs * plain.dp):
        rules.append("m-rounded")
    return plain, rules, faults


def _schedule(row: Row, vpp: int) -> str:
    if "gpipe" in row.words("extras"):
        return "gpipe"
    return "interleaved" if vpp > 1 else "1f1b"


def _split(layers: int, pp: int, vpp: int) -> int:
    for name in ("even", "balanced", "first-last"):
        if layers_per_chunk(SPLITS.index(name), layers, pp, vpp):
            return SPLITS.index(name)
    raise AssertionError(f"no split of {layers} layers over {pp} x {vpp}")


def _with_m(layout: Layout, problem: Problem) -> Layout:
    m = ceil(problem.training.global_batch / (layout.mbs * layout.dp))
    return replace(layout, m=max(1, m))


def _sharded(layout: Layout, problem: Problem) -> Layout:
    full = replace(layout, recompute=RECOMPUTE_FULL)
    if layout.pp > 1 or fits(problem, full):
        return layout
    return replace(layout, sharding=SHARDINGS.index("zero-3"))


def _micro(layout: Layout, problem: Problem) -> Layout:
    if layout.pp > 1:
        return layout
    for size in (4, 2):
        larger = _with_m(replace(layout, mbs=size), problem)
        if problem.training.global_batch % (size * layout.dp) == 0 and fits(
            problem, larger
        ):
            return larger
    return layout


def _recomputed(layout: Layout, problem: Problem, fused: bool) -> Layout:
    light = "layernorm+moe_act" if fused else "core_attn"
    heavy = f"{light}+mlp+moe+shared_experts".replace("moe_act+", "")
    for code in (0, code_of(light), code_of(heavy)):
        found = replace(layout, recompute=code)
        if fits(problem, found):
            return found
    return replace(layout, recompute=RECOMPUTE_FULL)
