"""What Accelerate can be told beside the axes of the layout, as of release 1.15.

Names are the fields of ``ParallelismConfig`` and, with ``fsdp_`` before them, of
``FullyShardedDataParallelPlugin``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from .option import Option, choice, flags, number

if TYPE_CHECKING:
    from collections.abc import Mapping

STATE_DICTS = ("full_state_dict", "local_state_dict", "sharded_state_dict")
WRAPS = ("transformer_based_wrap", "size_based_wrap", "no_wrap")
STRATEGIES = (
    "full_shard",
    "shard_grad_op",
    "no_shard",
    "hybrid_shard",
    "hybrid_shard_zero2",
)

ACCELERATE_OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        option.name: option
        for option in (
            number("dp_replicate_size", 1),
            choice("launch", "auto", "fsdp2", "fsdp1", "ddp"),
            choice("cp_backend", "torch"),
            choice("sp_backend", "deepspeed"),
            choice("cp_comm_strategy", "allgather", "alltoall"),
            choice("sp_attn_implementation", "auto", "flash_attention", "sdpa"),
            choice("mixed_precision", "no", "fp16", "bf16", "fp8", default="bf16"),
            *flags(
                "size_below_one",
                "sizes_given",
                "ulysses",
                "ulysses_and_cp",
                "sp_seq_length_fixed",
                "sp_seq_length_given",
                "fsdp_activation_checkpointing",
                "fsdp_activation_checkpointing_offload",
            ),
            choice("fsdp_reshard_after_forward", "auto", "flag", "strategy"),
            choice("fsdp_sharding_strategy", "auto", *STRATEGIES),
            choice("fsdp_state_dict_type", "auto", *STATE_DICTS),
            choice("fsdp_auto_wrap_policy", *WRAPS, default="no_wrap"),
            choice("fsdp_backward_prefetch", "auto", "pre", "post", "none"),
            choice("fsdp_forward_prefetch", "auto", "off", "on"),
            choice("fsdp_cpu_offload", "flag", "fsdp1", "fsdp2"),
            choice("fsdp_mixed_precision", "auto", "fp8", "fp16", "bf16", "fp32"),
        )
    }
)
