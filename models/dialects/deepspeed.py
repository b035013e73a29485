"""What DeepSpeed can be told beside the axes of the layout, as of release 0.19.

Names are the keys of its JSON configuration, joined by dots. The optimizer is
``deepspeed`` where the JSON names it and DeepSpeed makes it, and torch's otherwise.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from .option import Option, choice, flags, number

if TYPE_CHECKING:
    from collections.abc import Mapping

_TYPES = ("auto", "fp32", "fp16", "bf16")
_DEVICES = ("none", "cpu", "nvme")

DEEPSPEED_OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        option.name: option
        for option in (
            *flags(
                "fp16.enabled",
                "fp16.fp16_master_weights_and_grads",
                "bf16.bf16_master_weights_and_grads",
                "bf16.bf16_optimizer_states",
                "zero_optimization.legacy_stage1",
                "zero_optimization.zero_quantized_gradients",
                "zero_optimization.offload_optimizer.partial",
                "zero_optimization.offload_param.path",
                "zero_optimization.unknown_stage",
                "zero_optimization.unknown_key",
                "zero_allow_untested_optimizer",
                "prescale_gradients",
                "predivided_gradients",
                "compile.deepcompile",
                "expert_parallel.enabled",
                "removed_key",
            ),
            *flags(
                "bf16.enabled",
                "zero_optimization.compute_grad_norm",
                "zero_optimization.reduce_scatter",
                "zero_force_ds_cpu_optimizer",
                "managed_gradient_accumulation",
                "clipped_gradients",
                "fp16.dynamic_loss_scale",
                "fp16.loss_scale_known",
                on=True,
            ),
            choice("zero_optimization.overlap_comm", "auto", "off", "on"),
            choice("zero_optimization.offload_optimizer.device", *_DEVICES),
            choice("zero_optimization.offload_param.device", *_DEVICES),
            choice("data_types.grad_accum_dtype", *_TYPES),
            choice("data_types.param_dtype", *_TYPES),
            choice("communication_data_type", *_TYPES),
            choice("gradient_allreduce_op", "mean", "sum"),
            choice("optimizer", "deepspeed", "adamw", "sgd", "adagrad", "rmsprop"),
            number("zero_optimization.zero_hpz_partition_size", 1),
            number("zero_optimization.reduce_bucket_size", 500_000_000),
            number("fp16.loss_scale_window", 1000),
            number("fp16.min_loss_scale", 1),
        )
    }
)
