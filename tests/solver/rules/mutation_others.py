"""Cases by hand of rules of DeepSpeed and Accelerate that no recorded verdict shows.

These are rules that the frameworks are not asked about, and conditions beyond what
the recorded configurations say, such as DeepSpeed's own optimizers.
"""

from dataclasses import replace

from mutation_cases import MOE, OWN, SIZES, Hand, at, both_sides

from shardproof.models.layout import RECOMPUTE_FULL, SHARDINGS, SPLITS
from shardproof.solver.rules.facts import OPTIONS

_DS = "DeepSpeed 0.19.8 deepspeed/"
_ENGINE = f"{_DS}runtime/engine.py, DeepSpeedEngine"
_TYPE = f"{_ENGINE}._assert_valid_mixed_precision_config"
_CONFIG = f"{_DS}runtime/config.py, DeepSpeedConfig"
_ZERO = f"{_DS}runtime/zero/config.py, DeepSpeedZeroConfig"
_STAGE_12 = f"{_DS}runtime/zero/stage_1_and_2.py, DeepSpeedZeroOptimizer"
_PIPE = f"{_DS}runtime/pipe/module.py, PipelineModule._partition_layers"
_TRAIN = f"{_DS}runtime/pipe/schedule.py, TrainSchedule"
_WHOLE = f"{_DS}runtime/activation_checkpointing/checkpointing.py"
_HF = "Accelerate 1.15.0 accelerate/"
_MESH = f"{_HF}parallelism_config.py, ParallelismConfig"
_STATE = f"{_HF}state.py, AcceleratorState: cp_enabled"
_FSDP2 = f"{_MESH}._validate_accelerator: is_fsdp2"
_AXES = f"{_HF}accelerator.py, Accelerator: no pipeline, no expert ranks"
_DDP = f"{_HF}accelerator.py, Accelerator.prepare_model: DistributedDataParallel"
_RESHARD = f"{_HF}utils/dataclasses.py: reshard_after_forward"
_HOST = "zero_optimization.offload_optimizer.device"
_PARAMETERS = "zero_optimization.offload_param.device"
_FLAT = {"pp": 1, "sharding": SHARDINGS.index("zero-2")}


def _said(**words: object) -> dict[str, int]:
    """Options by word, ``__`` for a dot."""
    named = {name.replace("__", "."): word for name, word in words.items()}
    return {name: OPTIONS[name].code(word) for name, word in named.items()}


def _mesh(sharding: str, **axes: int) -> dict[str, int]:
    """Axes of Accelerate: no pipeline, sharded so."""
    return {"pp": 1, "sharding": SHARDINGS.index(sharding), **axes}


_ALONE = _mesh("none")
_MIXED = _said(data_types__grad_accum_dtype="fp32")
_LEGACY = _said(zero_optimization__legacy_stage1=True)
_OFFLOAD = {_HOST: 1}
_MASTERS = _said(bf16__bf16_master_weights_and_grads=True)
_COMPILED = _said(compile__deepcompile=True)
_SIZED = _said(sizes_given=True)
_PARTS = {"dp_replicate_size": 4}
_NO_PARTS = {"dp_replicate_size": 8}
_THREE = {"dp_replicate_size": 3}
DEEPSPEED: dict[str, list[Hand]] = {
    "ep-moe": both_sides(OWN, {}, {"ep": 2}),
    "layers-pp": both_sides(
        f"{_PIPE}: uniform", {"pp": 2}, {"pp": 4}, replace(SIZES, layers=14)
    ),
    "layers-balanced": both_sides(OWN, {}, {"split": SPLITS.index("balanced")}),
    "schedule-vpp": [
        *both_sides(_TRAIN, {}, at("gpipe")),
        *both_sides(_TRAIN, {}, at("1f1b", vpp=2)),
        Hand(False, _TRAIN, axes=at("1f1b", vpp=0)),
        Hand(False, _TRAIN, axes=at("interleaved")),
    ],
    "layers-filled": [
        Hand(True, _PIPE, sizes=replace(SIZES, layers=4), read=True),
        Hand(False, _PIPE, sizes=replace(SIZES, layers=3), read=True),
    ],
    "recompute-whole": [
        *both_sides(_WHOLE, {}, {"recompute": 1}),
        *both_sides(_WHOLE, {"recompute": RECOMPUTE_FULL}, {"sp": 1}),
        Hand(False, _WHOLE, axes={"recompute": RECOMPUTE_FULL + 1}),
        Hand(False, _WHOLE, axes={"recompute": RECOMPUTE_FULL - 1}),
        Hand(False, OWN, axes={"split": SPLITS.index("first-last")}),
        Hand(
            True,
            OWN,
            sizes=replace(SIZES, layers=14),
            axes={"split": SPLITS.index("balanced")},
        ),
    ],
    "ep-tp": [
        Hand(True, _ENGINE, sizes=MOE, axes={"pp": 1, "ep": 2}),
        Hand(False, _ENGINE, sizes=MOE, axes={"pp": 1, "ep": 2, "tp": 2}),
        Hand(False, _ENGINE, sizes=MOE, axes={"pp": 1, "etp": 2}),
    ],
    "cp-alone": both_sides(_CONFIG, {"pp": 1, "cp": 2}, {"pp": 2, "cp": 2}),
    "loss-scale": both_sides(
        f"{_DS}runtime/precision_config.py, DeepSpeedFP16Config",
        _said(bf16__enabled=False, fp16__enabled=True) | {"fp16.loss_scale_window": 1},
        _said(bf16__enabled=False, fp16__enabled=True) | {"fp16.loss_scale_window": 0},
    ),
    "accumulation-type": both_sides(
        _TYPE,
        {"sharding": 0}
        | _said(bf16__enabled=True, data_types__grad_accum_dtype="bf16"),
        {"sharding": 0}
        | _said(bf16__enabled=False, data_types__grad_accum_dtype="bf16"),
    ),
    "managed-accumulation": both_sides(
        f"{_ENGINE}: managed_gradient_accumulation",
        _FLAT | _said(managed_gradient_accumulation=False),
        _FLAT | _said(managed_gradient_accumulation=False) | _COMPILED,
    ),
    "zero-stage": both_sides(
        f"{_ZERO}: ZeroStageEnum", {"pp": 1, "sharding": 3}, {"pp": 1, "sharding": 4}
    ),
    "offload-device": both_sides(
        f"{_DS}runtime/zero/offload_config.py, OffloadDeviceEnum",
        {_HOST: OPTIONS[_HOST].code("cpu")},
        {_HOST: OPTIONS[_HOST].unknown},
    ),
    "legacy-stage1": [
        Hand(True, _ENGINE, options=_LEGACY | _MIXED),
        Hand(False, _ENGINE, axes=_FLAT, options=_LEGACY | _MIXED),
        Hand(False, _ENGINE, options=_LEGACY | _MIXED | _OFFLOAD),
    ],
    "offload-ignored": [
        *both_sides(_ENGINE, _OFFLOAD, {"sharding": 0} | _OFFLOAD),
        *both_sides(
            _ENGINE,
            {"pp": 1, "sharding": 3, _PARAMETERS: 1},
            {"pp": 1, "sharding": 2, _PARAMETERS: 1},
        ),
        Hand(False, _ENGINE, axes={"pp": 1, "sharding": 4, _PARAMETERS: 1}),
    ],
    "reduce-sum": both_sides(
        f"{_CONFIG}: gradient_allreduce_op",
        _said(gradient_allreduce_op="sum"),
        _said(gradient_allreduce_op="sum") | _COMPILED,
    ),
    "master-optimizer": both_sides(
        f"{_STAGE_12}: Master weights feature",
        _FLAT | _MASTERS | _OFFLOAD,
        _FLAT | _MASTERS,
    ),
    "scaled-gradients": both_sides(
        f"{_STAGE_12}: postscale_gradients",
        _FLAT | _said(prescale_gradients=True, zero_optimization__reduce_scatter=False),
        _FLAT | _said(prescale_gradients=True),
    ),
}
_BOTH = _mesh("zero-3", cp=2)
_CUT = _mesh("zero-3", tp=2)
ACCELERATE: dict[str, list[Hand]] = {
    "ep-moe": both_sides(_AXES, _ALONE, _ALONE | {"ep": 2}),
    "heads-tp": both_sides(
        "transformers: the plans of tp cut whole heads",
        _mesh("zero-3", tp=1),
        _mesh("zero-3", tp=2),
        replace(SIZES, heads=(7,)),
    ),
    "batch": both_sides(OWN, _ALONE, _ALONE | {"m": 7}),
    "replicas-alone": [
        Hand(True, _MESH, axes=_CUT),
        Hand(False, _MESH, axes=_mesh("none", tp=2)),
        Hand(False, _MESH, axes=_BOTH | _PARTS | _said(launch="fsdp2")),
        Hand(True, _MESH, axes=_BOTH | _PARTS | _said(launch="fsdp2", ulysses=True)),
    ],
    "cp-fsdp2": [
        Hand(True, _STATE, axes=_BOTH),
        Hand(True, _STATE, axes=_mesh("zero-2", cp=2)),
        Hand(False, _STATE, axes=_BOTH | _said(launch="ddp")),
        Hand(False, _STATE, axes=_BOTH | _said(launch="fsdp1")),
        Hand(False, _STATE, axes=_mesh("none", cp=2, tp=1, dp=4)),
        Hand(False, _STATE, axes=_mesh("none", cp=8, dp=1)),
    ],
    "fsdp2-shards": [
        Hand(True, _FSDP2, axes=_mesh("zero-3") | _SIZED | _PARTS),
        Hand(False, _FSDP2, axes=_mesh("zero-3") | _SIZED | _NO_PARTS),
        Hand(False, _FSDP2, axes=_mesh("zero-2") | _SIZED | _NO_PARTS),
        Hand(
            True,
            _FSDP2,
            axes=_mesh("zero-3") | _SIZED | _NO_PARTS | _said(launch="ddp"),
        ),
        Hand(True, _FSDP2, axes=_ALONE | _SIZED | _NO_PARTS),
        Hand(True, _FSDP2, axes=_ALONE | _SIZED | _PARTS | _said(launch="fsdp2")),
        Hand(False, _FSDP2, axes=_BOTH | _SIZED | _PARTS | _said(ulysses=True)),
        Hand(True, _FSDP2, axes=_mesh("zero-3"), sizes=replace(SIZES, world=1)),
    ],
    "axes": [
        *both_sides(_AXES, _ALONE, _ALONE | {"pp": 2}),
        *both_sides(_AXES, _ALONE, _ALONE | {"vpp": 2}),
        *both_sides(_AXES, _ALONE, _ALONE | {"ep": 2}, MOE),
        *both_sides(_AXES, _ALONE, _ALONE | {"etp": 2}, MOE),
        *both_sides(_AXES, _ALONE, _ALONE | {"recompute": 1}),
        *both_sides(_AXES, _ALONE, _ALONE | {"sp": 1}),
        *both_sides(_AXES, _ALONE, _ALONE | {"split": 1}),
        *both_sides(_AXES, _ALONE, _ALONE | at("gpipe")),
        Hand(True, _AXES, axes=_ALONE | {"recompute": RECOMPUTE_FULL}),
        Hand(False, _AXES, axes=_ALONE | {"recompute": RECOMPUTE_FULL + 1}),
    ],
    "sharding-stage": [
        Hand(True, _RESHARD, axes=_ALONE),
        Hand(True, _RESHARD, axes=_mesh("zero-2")),
        Hand(True, _RESHARD, axes=_mesh("zero-3") | _PARTS),
        Hand(False, _RESHARD, axes=_mesh("zero-1")),
        Hand(False, _RESHARD, axes=_mesh("megatron-fsdp")),
        Hand(False, _RESHARD, axes=_mesh("zero-3") | _THREE),
        Hand(True, _RESHARD, axes=_mesh("zero-3") | {"dp_replicate_size": 0}),
        Hand(True, _RESHARD, axes=_ALONE | _THREE),
        Hand(False, _RESHARD, axes=_ALONE | _THREE | _said(launch="ddp")),
    ],
    "shard-ignored": [
        Hand(True, _DDP, axes=_ALONE),
        Hand(True, _DDP, axes=_ALONE | _NO_PARTS | _said(launch="ddp")),
        Hand(False, _DDP, axes=_ALONE | _PARTS | _said(launch="ddp")),
        Hand(True, _DDP, axes=_mesh("zero-3") | _PARTS),
        Hand(True, _DDP, axes=_ALONE | _PARTS | _said(launch="fsdp2")),
    ],
}
OTHERS = {
    (dialect, rule): cases
    for dialect, found in (("deepspeed", DEEPSPEED), ("accelerate", ACCELERATE))
    for rule, cases in found.items()
}
