"""A rank's part of a case's model, built by megatron-core."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch
from megatron.core import parallel_state
from megatron.core.models import backends
from megatron.core.models.gpt import GPTModel, gpt_layer_specs
from megatron.core.tensor_parallel import random as framework_random

from . import device
from .kernels import FlashCore, Norm
from .settings import Case, config_of, dtype_of, sizes_of, world_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_groups: tuple[Any, ...] = ()


@contextlib.contextmanager
def _same_state(self: Any, name: str = "") -> Iterator[None]:
    yield


def install() -> None:
    """Replace random states and norms, which need a device or Apex."""
    state = torch.zeros(16, dtype=torch.uint8)
    framework_random._get_cuda_rng_state = lambda *args, **kwargs: state
    framework_random._set_cuda_rng_state = lambda *args, **kwargs: None
    framework_random.CudaRNGStatesTracker.fork = _same_state
    backends.WrappedTorchNorm = backends.LNImpl = Norm
    gpt_layer_specs.LNImpl = Norm


def _start_groups(case: Case) -> None:
    global _groups
    sizes, world, rank = sizes_of(case), world_of(case), case.get("rank", 0)
    wanted = (world, rank, *sorted(sizes.items()))
    if wanted == _groups:
        return
    if parallel_state.model_parallel_is_initialized():
        parallel_state.destroy_model_parallel()
    device.start_group(world, rank)
    parallel_state.initialize_model_parallel(create_gloo_process_groups=False, **sizes)
    _groups = wanted


def _spec_of(case: Case, config: Any) -> Any:
    engine, experts = case.get("impl") == "te", case.get("experts")
    chosen = {
        "num_experts": experts,
        "moe_grouped_gemm": case.get("grouped", False),
        "qk_layernorm": case.get("qk_ln", False),
        "multi_latent_attention": bool(case.get("mla")),
    }
    norm = config.normalization
    if experts and case.get("moe_freq", 1) != 1:
        spec = gpt_layer_specs.get_gpt_decoder_block_spec(
            config, use_transformer_engine=engine, normalization=norm
        )
    elif engine:
        spec = gpt_layer_specs.get_gpt_layer_with_transformer_engine_spec(**chosen)
    else:
        spec = gpt_layer_specs.get_gpt_layer_local_spec(**chosen, normalization=norm)
    if not engine and case.get("attn") == "flash":
        for layer in getattr(spec, "layer_specs", [spec]):
            layer.submodules.self_attention.submodules.core_attention = FlashCore
    return spec


def _narrow(model: Any, dtype: torch.dtype) -> None:
    """Do what ``Float16Module`` does; ``Module.to`` cannot exchange fake parameters."""
    for module in model.modules():
        for name, old in list(module._parameters.items()):
            if old is not None and old.is_floating_point() and old.dtype != dtype:
                new = torch.nn.Parameter(torch.empty(old.shape, dtype=dtype))
                new.__dict__.update(old.__dict__)
                module._parameters[name] = new


def build(case: Case) -> Any:
    """Return the model of the case's rank, under an active fake mode."""
    _start_groups(case)
    config = config_of(case)
    spec = _spec_of(case, config)
    predicted = (
        gpt_layer_specs.get_gpt_mtp_block_spec(
            config, spec, use_transformer_engine=case.get("impl") == "te"
        )
        if case.get("mtp")
        else None
    )
    model = GPTModel(
        config,
        spec,
        vocab_size=case.get("vocab", 32000),
        max_sequence_length=case["s"],
        pre_process=case.get("pre", True),
        post_process=case.get("post", True),
        share_embeddings_and_output_weights=case.get("tied", False),
        position_embedding_type=case.get("pos", "rope"),
        mtp_block_spec=predicted,
        vp_stage=0 if case.get("vpp") else None,
        fp16_lm_cross_entropy=False,
        parallel_output=True,
    )
    if dtype_of(case) != torch.float32:
        _narrow(model, dtype_of(case))
    return model
