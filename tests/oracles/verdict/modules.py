"""Layers and embedding built at full size, without memory: fake tensors."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from megatron.core.models.backends import LocalSpecProvider
from megatron.core.models.common.embeddings.language_model_embedding import (
    LanguageModelEmbedding,
)
from megatron.core.models.gpt import gpt_layer_specs
from megatron.core.transformer.moe.experts import SequentialMLP
from megatron.core.transformer.moe.moe_layer import MoELayer
from megatron.core.transformer.spec_utils import build_module

if TYPE_CHECKING:
    from collections.abc import Mapping

    from megatron.core.transformer.transformer_config import TransformerConfig

_PAD = 128


class _Reached(BaseException):
    """The layer began to route tokens."""


class Core(torch.nn.Module):
    """Attention itself is TransformerEngine's: this one returns its queries' shape."""

    def __init__(self, config: TransformerConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.config = config

    def forward(self, query: Any, key: Any, value: Any, *args: Any, **kw: Any) -> Any:
        """Mix the three so that each gets a gradient."""
        groups = query.shape[-2] // value.shape[-2]
        seen = value.repeat_interleave(groups, dim=-2)
        score = (query.sum(-1) + key.repeat_interleave(groups, -2).sum(-1)).unsqueeze(
            -1
        )
        return (seen * score).flatten(-2)


class Norm(torch.nn.Module):
    """What apex or TransformerEngine would give."""

    def __init__(
        self, config: TransformerConfig, hidden_size: int, eps: float = 1e-5, **kw: Any
    ) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(
            torch.ones(hidden_size, dtype=config.params_dtype)
        )
        self.weight.sequence_parallel = config.sequence_parallel  # type: ignore[attr-defined]

    def forward(self, x: Any) -> Any:
        """Scale."""
        return x * self.weight


def install() -> None:
    """Take the two modules above, and experts one by one, from the local backend."""
    LocalSpecProvider.core_attention = lambda self: Core
    LocalSpecProvider.layer_norm = lambda self, rms_norm=False, for_qk=False: Norm
    experts = LocalSpecProvider.grouped_mlp_modules
    LocalSpecProvider.grouped_mlp_modules = lambda self, grouped, legacy=False: experts(
        self, False, legacy
    )
    gpt_layer_specs.LNImpl = Norm


def of_one_stage(config: TransformerConfig) -> TransformerConfig:
    """Return a copy of one pipeline stage that asks for no kernel of other packages.

    Where a layer lies is asked stage by stage, see ``partition``. FP8 and fused
    gradients are TransformerEngine's and apex's; CUDA graphs need its random states.
    """
    plain = copy.copy(config)
    plain.pipeline_model_parallel_size = 1
    plain.virtual_pipeline_model_parallel_size = None
    plain.num_layers_in_first_pipeline_stage = None
    plain.num_layers_in_last_pipeline_stage = None
    plain.pipeline_model_parallel_layout = None
    plain.fp8 = plain.fp4 = None
    plain.gradient_accumulation_fusion = False
    plain.cuda_graph_impl, plain.cuda_graph_scope = "none", []
    return plain


def layer_specs(config: TransformerConfig) -> list[Any]:
    """Return the spec of every layer, or raise what megatron-core raises."""
    return gpt_layer_specs.get_gpt_decoder_layer_specs(
        config, use_transformer_engine=False, normalization="RMSNorm"
    )


def is_sparse(spec: Any) -> bool:
    """Whether a layer has experts."""
    return spec.submodules.mlp.module is MoELayer


def build_layer(config: TransformerConfig, spec: Any) -> torch.nn.Module:
    """Build one layer, or raise what megatron-core raises."""
    return build_module(spec, config=config, layer_number=1)


def build_few_experts(config: TransformerConfig, spec: Any) -> torch.nn.Module:
    """Build a sparse layer with at most two of a rank's experts, which are alike."""
    whole = SequentialMLP.__init__

    def few(self: Any, num_local_experts: int, *args: Any, **kwargs: Any) -> None:
        whole(self, min(num_local_experts, 2), *args, **kwargs)

    SequentialMLP.__init__ = few
    try:
        return build_layer(config, spec)
    finally:
        SequentialMLP.__init__ = whole


def padded_vocab(vocab: int, tp: int) -> int:
    """Return the vocabulary as the launcher pads it."""
    unit = _PAD * tp
    return -(-vocab // unit) * unit


def vocabulary(case: Mapping[str, Any]) -> int:
    """Return the vocabulary a case's model is built with."""
    vocab, tp = case["arch"]["vocab_size"], case["config"].get("tp", 1)
    pads = case["config"].get("pad_vocab", True)
    return padded_vocab(vocab, tp) if pads else vocab


def build_embedding(config: TransformerConfig, vocab: int) -> Any:
    """Build the embedding, or raise what megatron-core raises."""
    return LanguageModelEmbedding(
        config=config,
        vocab_size=vocab,
        max_sequence_length=1,
        position_embedding_type="rope",
    )


def embed(config: TransformerConfig, length: int) -> None:
    """Run an embedding of a small vocabulary over one sequence of that length."""
    embedding = build_embedding(config, _PAD * config.tensor_model_parallel_size)
    ids = torch.zeros(1, length, dtype=torch.long)
    embedding(ids, ids)


def _route(*args: Any, **kwargs: Any) -> NoReturn:
    raise _Reached


def enter_experts(layer: Any, config: TransformerConfig) -> None:
    """Call the experts' forward up to the routing, or raise what is raised."""
    experts = layer.mlp
    experts.shared_experts_compute = _route
    hidden = torch.empty(4, 1, config.hidden_size, dtype=config.params_dtype)
    try:
        experts(hidden)
    except _Reached:
        return
    raise AssertionError("the experts routed nothing")
