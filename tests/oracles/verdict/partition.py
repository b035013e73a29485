"""Which layers each rank builds, asked rank by rank and chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from megatron.core import parallel_state
from megatron.core.transformer.transformer_block import get_num_layers_to_build
from megatron.core.transformer.transformer_layer import get_transformer_layer_offset

if TYPE_CHECKING:
    from megatron.core.transformer.transformer_config import TransformerConfig


@dataclass(frozen=True)
class Partition:
    """Layers of every chunk of every pipeline rank, and whether each exists once."""

    layers_per_stage: list[list[int]]
    add_up: bool
    each_once: bool


def partition(config: TransformerConfig) -> Partition:
    """Ask for every stage, or raise what megatron-core raises."""
    pp, vpp = config.pipeline_model_parallel_size, None
    if pp > 1:
        vpp = config.virtual_pipeline_model_parallel_size
    counts, built = [], []
    try:
        for rank in range(pp):
            parallel_state.set_pipeline_model_parallel_rank(rank)
            counts.append([])
            for chunk in range(vpp or 1):
                stage = None if vpp is None else chunk
                number = get_num_layers_to_build(config, vp_stage=stage, pp_rank=rank)
                first = get_transformer_layer_offset(
                    config, vp_stage=stage, pp_rank=rank
                )
                counts[-1].append(number)
                built += range(first, first + number)
    finally:
        parallel_state.set_pipeline_model_parallel_rank(None)
    return Partition(
        layers_per_stage=counts,
        add_up=sum(map(sum, counts)) == config.num_layers,
        each_once=sorted(built) == list(range(config.num_layers)),
    )
