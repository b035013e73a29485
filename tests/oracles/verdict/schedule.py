"""The real schedule function, run up to its first forward step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import torch
from megatron.core.enums import ModelType
from megatron.core.models.gpt import GPTModel
from megatron.core.pipeline_parallel import schedules

if TYPE_CHECKING:
    from megatron.core.transformer.transformer_config import TransformerConfig


class _Reached(BaseException):
    """The schedule refused nothing and began its first forward step."""


class _Chunk(GPTModel):
    """A model chunk with nothing in it but its configuration."""

    def __init__(self, config: TransformerConfig) -> None:
        torch.nn.Module.__init__(self)
        self.config = config
        self.model_type = ModelType.encoder_or_decoder

    def set_input_tensor(self, tensor: Any) -> None:
        """Take nothing."""

    def build_schedule_plan(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Be there for the schedules that overlap the experts' all-to-all."""
        raise _Reached


def _first_step(*args: Any, **kwargs: Any) -> NoReturn:
    raise _Reached


def run(
    config: TransformerConfig, vpp: int | None, micro_batches: int, mbs: int, seq: int
) -> None:
    """Start a step, or raise what the schedule raises."""
    pp = config.pipeline_model_parallel_size
    chunks = [_Chunk(config) for _ in range(vpp or 1)]
    several = vpp is not None and pp > 1
    step = schedules.get_forward_backward_func()
    try:
        step(
            forward_step_func=_first_step,
            data_iterator=[iter(()) for _ in chunks] if several else iter(()),
            model=chunks if several else chunks[0],
            num_microbatches=micro_batches,
            seq_length=seq,
            micro_batch_size=mbs,
        )
    except _Reached:
        return
    raise AssertionError("the schedule ended without a forward step")
