"""A whole run as Megatron's arguments describe it: model, layout, stages, kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import InputError
from ..layout import (
    DECIDED,
    DERIVED,
    PRECISIONS,
    SCHEDULES,
    SHARDINGS,
    Dims,
    recompute_code,
)
from ..memory.library import FLASH, FUSED, UNFUSED, Software, backend
from ..memory.library_kernels import UnfusedKernels
from ..memory.model import MemoryModel
from ..memory.phases import Run
from .megatron_args_model import architecture_of, kernels_of
from .megatron_args_stages import stages_of
from .megatron_args_training import precision_of, training_of

if TYPE_CHECKING:
    from ..architecture import Architecture
    from ..memory.library import Backend
    from .megatron_args import Arguments

#: Micro-batches whose logits' gradients wait where the limit is not given: 2 fits all
#: seven rows of Megatron's CI that defer them.
DEFERRED = 2


def read_run(
    args: Arguments,
    world: int,
    generation: str,
    attention: Backend | None = None,
    architecture: Architecture | None = None,
) -> Run:
    """Read a run.

    Parameters
    ----------
    args
        Megatron's arguments.
    world
        Devices of the run.
    generation
        The devices' instruction set, such as ``sm90``.
    attention
        The attention that runs, if it is known better than the arguments say.
    architecture
        The model, if it is known better than the arguments say.

    Raises
    ------
    InputError
        If an argument is missing, wrong, or the parallel sizes do not fit the world.
    """
    arch = architecture or architecture_of(args)
    stages = stages_of(args, arch)
    point = point_of(args, world, len(stages[0]))
    chosen = attention or attention_of(args, generation)
    kernels = kernels_of(args)
    training = training_of(args, point["m"] * point["mbs"] * point["dp"])
    if instances := args.whole("num-distributed-optimizer-instances", 1):
        # Each copy of the shards spans its part of the data-parallel ranks.
        point |= {n: max(1, point[n] // instances) for n in ("dp", "edp")}
    names = (*DECIDED, *DERIVED, "precision")
    values = {name: (point.get(name, 0),) for name in names}
    flat = UnfusedKernels.of(kernels) if chosen == UNFUSED else replace(kernels)
    return Run(
        model=MemoryModel(arch, training, Dims.of(values), flat),
        stages=stages,
        schedule=SCHEDULES[point["schedule"]],
        m=point["m"],
        software=_software(args, generation, chosen, point["pp"]),
    )


def point_of(args: Arguments, world: int, vpp: int) -> dict[str, int]:
    """Return the axes of the layout.

    Raises
    ------
    InputError
        If tp, pp and cp do not divide the devices.
    """
    tp = args.whole("tensor-model-parallel-size", 1)
    pp = args.whole("pipeline-model-parallel-size", 1)
    cp = args.whole("context-parallel-size", 1)
    ep = args.whole("expert-model-parallel-size", 1)
    etp = args.whole("expert-tensor-parallel-size", tp)
    if min(tp, pp, cp, ep, etp) < 1 or world % (tp * pp * cp):
        raise InputError(
            f"the number of devices must be a multiple of tp pp cp, got {world} and "
            f"{tp} {pp} {cp}"
        )
    dp = world // (tp * pp * cp)
    mbs = args.whole("micro-batch-size", 1, least=1)
    batch = args.whole("global-batch-size", mbs * dp)
    sharded = args.has("use-distributed-optimizer")
    sharding = "megatron-fsdp" if args.has("use-megatron-fsdp") else "zero-1"
    if args.has("use-torch-fsdp2"):
        sharded, sharding = True, "fsdp2"
    return {
        "tp": tp,
        "pp": pp,
        "vpp": vpp,
        "cp": cp,
        "ep": ep,
        "etp": etp,
        "mbs": mbs,
        "sp": int(args.has("sequence-parallel") and tp > 1),
        "schedule": SCHEDULES.index("interleaved" if vpp > 1 else "1f1b"),
        "recompute": _recompute(args),
        "sharding": SHARDINGS.index(sharding) if sharded else 0,
        "precision": PRECISIONS.index(precision_of(args)),
        "dp": dp,
        "edp": max(1, world // (etp * ep * pp)),
        "m": max(1, batch // (mbs * dp)),
    }


def attention_of(args: Arguments, generation: str) -> Backend:
    """Return the attention that runs: the one asked for, or the engine's choice."""
    asked = args.text("attention-backend", "auto")
    local = args.text("transformer-impl", "transformer_engine") == "local"
    flash = args.has("use-flash-attn")
    if asked in ("unfused", "local") or (local and not flash):
        return UNFUSED
    if asked == FUSED:
        return FUSED
    if asked == FLASH or flash:
        return FLASH
    return backend(generation, deterministic=args.has("deterministic-mode"))


def _recompute(args: Arguments) -> int:
    granularity = args.text("recompute-granularity")
    if granularity == "full":
        number = args.whole("recompute-num-layers", 1)
        method = args.text("recompute-method", "uniform")
        return recompute_code(f"full-{method}-{number}" if number else "none")
    if granularity != "selective":
        return 0
    return recompute_code("+".join(args.text("recompute-modules", "core_attn").split()))


def _software(
    args: Arguments, generation: str, attention: Backend, pp: int
) -> Software:
    group = args.whole("microbatch-group-size-per-virtual-pipeline-stage", 0)
    if not group and args.has("overlap-p2p-communication-warmup-flush"):
        # Overlapping the flush needs more micro-batches in a group than ranks.
        group = pp + 1
    defers = args.has("defer-embedding-wgrad-compute")
    return Software(
        generation=generation,
        attention=attention,
        deterministic=args.has("deterministic-mode"),
        masks=not args.has("no-create-attention-mask-in-dataloader"),
        grouped=args.has("moe-grouped-gemm"),
        deferred=args.whole("wgrad-deferral-limit", DEFERRED) if defers else 0,
        group=group or None,
    )
