"""Read DeepSpeed's JSON configuration into axes, options and sizes.

A key that is not there has the value DeepSpeed gives it. Nothing is judged: values
that it would refuse are read all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .configuration import Configuration
from .deepspeed import DEEPSPEED_OPTIONS
from .fields import flag, text_of, whole
from .sizes import Sizes

if TYPE_CHECKING:
    from collections.abc import Mapping

_ZERO = "zero_optimization"
_MANY = 2**26
#: Keys that release 0.19 removed and refuses, and those of the section of ZeRO.
_REMOVED = (
    "amp",
    "compression_training",
    "curriculum_learning",
    "eigenvalue",
    "elasticity",
    "graph_harvesting",
    "nebula",
    "progressive_layer_drop",
    "quantize_training",
    "sparse_attention",
    "sparse_gradients",
)
_REMOVED_OF_ZERO = (
    "mics_hierarchical_params_gather",
    "mics_shard_size",
    "zeropp_loco_param",
)
#: Keys of the section of ZeRO that are read here or tie nothing.
_KNOWN_OF_ZERO = (
    "stage",
    "contiguous_gradients",
    "reduce_scatter",
    "reduce_bucket_size",
    "allgather_partitions",
    "allgather_bucket_size",
    "overlap_comm",
    "compute_grad_norm",
    "offload_param",
    "offload_optimizer",
    "sub_group_size",
    "legacy_stage1",
    "round_robin_gradients",
    "zero_hpz_partition_size",
    "zero_quantized_weights",
    "zero_quantized_gradients",
    "stage3_prefetch_bucket_size",
    "stage3_param_persistence_threshold",
    "stage3_max_live_parameters",
    "stage3_max_reuse_distance",
    "stage3_gather_16bit_weights_on_model_save",
)


def read_deepspeed(case: Mapping[str, Any]) -> Configuration:
    """Read a configuration of DeepSpeed.

    Parameters
    ----------
    case
        ``config`` as DeepSpeed's JSON has it; ``world``; the sizes that DeepSpeed is
        told elsewhere, ``tp`` and ``pp``, 1 by default; the model's ``layers``,
        ``heads``, ``kv_heads`` and ``experts``; ``optimizer``.

    Raises
    ------
    InputError
        If a value is missing or not of its kind.
    """
    config = _section(case, "config")
    sizes = Sizes(
        world=whole(case, "world"),
        seq_len=whole(case, "seq", 4096),
        global_batch=0,
        layers=whole(case, "layers"),
        hidden=whole(case, "hidden", 1),
        heads=(whole(case, "heads"),),
        kv_heads=(whole(case, "kv_heads", whole(case, "heads")),),
        vocab=1,
        moe=bool(case.get("experts")),
        experts=(case["experts"],) if case.get("experts") else (),
    )
    point = _point(case, config, sizes)
    batch = point.pop("batch")
    return Configuration(
        point=point,
        options=_options(config, text_of(case, "optimizer", "deepspeed")),
        sizes=Sizes(**{**vars(sizes), "global_batch": batch}),
    )


def _section(source: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = source.get(name)
    found = {} if found is None else found
    if not isinstance(found, dict):
        raise InputError(f"{name} is a mapping, got {str(found)[:60]!r}")
    return found


def _point(
    case: Mapping[str, Any], config: Mapping[str, Any], sizes: Sizes
) -> dict[str, int]:
    tp, pp = whole(case, "tp", 1), whole(case, "pp", 1)
    cp = whole(config, "sequence_parallel_size", 1)
    experts = _section(config, "expert_parallel")
    on = flag(experts, "enabled")
    ep = whole(experts, "autoep_size", 1) if on else 1
    etp = whole(experts, "expert_tensor_parallel_size", 1) if on else 1
    dp = sizes.world // (tp * pp * cp)
    batch, mbs, m = _batch(config, dp)
    stage = whole(_section(config, _ZERO), "stage", 0, least=-_MANY)
    return {
        **{"tp": tp, "pp": pp, "vpp": 1, "cp": cp, "ep": ep, "etp": etp},
        **{"mbs": mbs, "sp": 0, "schedule": 0, "split": 0, "recompute": 0},
        "sharding": min(max(stage, 0), 3),
        **{"dp": dp, "edp": sizes.world // (etp * ep * pp), "m": m, "batch": batch},
    }


def _batch(config: Mapping[str, Any], dp: int) -> tuple[int, int, int]:
    """Return batch, micro-batch and accumulation; what is missing is derived."""

    def told(name: str) -> int | None:
        return None if config.get(name) is None else whole(config, name, least=-_MANY)

    batch, mbs = told("train_batch_size"), told("train_micro_batch_size_per_gpu")
    m, share = told("gradient_accumulation_steps"), max(1, dp)
    if batch is None and mbs is None:
        return 0, 0, 0
    if batch is None:
        assert mbs is not None
        m = 1 if m is None else m
        return mbs * m * dp, mbs, m
    if mbs is None:
        m = 1 if m is None else m
        return batch, batch // share // m if m else 0, m
    if m is None:
        m = batch // mbs // share if mbs else 0
    return batch, mbs, m


def _options(config: Mapping[str, Any], optimizer: str) -> dict[str, int]:
    zero, half = _section(config, _ZERO), _section(config, "fp16")
    brain = _section(config, "bf16" if "bf16" in config else "bfloat16")
    host, types = _section(zero, "offload_optimizer"), _section(config, "data_types")
    parameters = _section(zero, "offload_param")
    scale = half.get("loss_scale", 0)
    number = isinstance(scale, int | float) and not isinstance(scale, bool)
    found: dict[str, object] = {
        "optimizer": optimizer,
        "bf16.enabled": flag(brain, "enabled"),
        "fp16.enabled": flag(half, "enabled"),
        "fp16.loss_scale_known": number and scale >= 0,
        "fp16.dynamic_loss_scale": number and scale == 0,
        "clipped_gradients": bool(config.get("gradient_clipping", 1.0)),
        "predivided_gradients": config.get("gradient_predivide_factor", 1.0) != 1.0,
        "compile.deepcompile": flag(_section(config, "compile"), "deepcompile"),
        "expert_parallel.enabled": flag(_section(config, "expert_parallel"), "enabled"),
        "gradient_allreduce_op": text_of(config, "gradient_allreduce_op", "mean"),
        "removed_key": any(k in config for k in _REMOVED)
        or any(k in zero for k in _REMOVED_OF_ZERO),
        f"{_ZERO}.unknown_stage": not 0 <= zero.get("stage", 0) <= 3,
        f"{_ZERO}.unknown_key": any(
            k not in (*_KNOWN_OF_ZERO, *_REMOVED_OF_ZERO) for k in zero
        ),
        f"{_ZERO}.offload_optimizer.partial": host.get("ratio", 1.0) < 1.0,
        f"{_ZERO}.offload_optimizer.device": text_of(host, "device", "none"),
        f"{_ZERO}.offload_param.device": text_of(parameters, "device", "none"),
        f"{_ZERO}.offload_param.path": bool(parameters.get("nvme_path")),
        "fp16.fp16_master_weights_and_grads": flag(
            half, "fp16_master_weights_and_grads"
        ),
    }
    for name in ("bf16_master_weights_and_grads", "bf16_optimizer_states"):
        found[f"bf16.{name}"] = flag(brain, name)
    for name in ("compute_grad_norm", "reduce_scatter"):
        found[f"{_ZERO}.{name}"] = flag(zero, name, True)
    for name in ("legacy_stage1", "zero_quantized_gradients"):
        found[f"{_ZERO}.{name}"] = flag(zero, name)
    for name in ("zero_force_ds_cpu_optimizer", "managed_gradient_accumulation"):
        found[name] = flag(config, name, True)
    for name in ("zero_allow_untested_optimizer", "prescale_gradients"):
        found[name] = flag(config, name)
    codes = {name: DEEPSPEED_OPTIONS[name].code(v) for name, v in found.items()}
    return codes | _left_alone(config, zero, half, types)


def _left_alone(
    config: Mapping[str, Any],
    zero: Mapping[str, Any],
    half: Mapping[str, Any],
    types: Mapping[str, Any],
) -> dict[str, int]:
    """Code what has a default of its own where it is left alone."""
    overlap = zero.get("overlap_comm")
    found: dict[str, object] = {
        "communication_data_type": config.get("communication_data_type"),
        f"{_ZERO}.overlap_comm": {True: "on", False: "off"}.get(overlap)
        if overlap is not None
        else None,
        f"{_ZERO}.zero_hpz_partition_size": zero.get("zero_hpz_partition_size"),
        f"{_ZERO}.reduce_bucket_size": zero.get("reduce_bucket_size"),
        "fp16.loss_scale_window": half.get("loss_scale_window"),
        "fp16.min_loss_scale": half.get("min_loss_scale"),
    }
    for name in ("grad_accum_dtype", "param_dtype"):
        found[f"data_types.{name}"] = types.get(name)
    return {
        name: DEEPSPEED_OPTIONS[name].code(value)
        for name, value in found.items()
        if value is not None
    }
