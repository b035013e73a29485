"""One forward and backward of a two-layer model, wrapped for data parallelism.

The layers are those of the case on one pipeline stage: a dense and a sparse one
where the model has both. What needs a device or another package is left out (FP8,
CUDA graphs, offload, overlap of communication, the flex and allgather dispatchers);
tokens are padded to capacity, so that no shape depends on data, and a rank keeps at
most two experts, which are alike.
"""

from __future__ import annotations

import contextlib
import signal
import types
from typing import TYPE_CHECKING, Any, NoReturn

import megatron.core.tensor_parallel.random as random
import torch
import torch._dynamo
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
)
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt import gpt_layer_specs as specs
from megatron.core.pipeline_parallel import schedules
from megatron.core.transformer.moe.experts import SequentialMLP
from megatron.core.transformer.multi_token_prediction import MTPLossLoggingHelper
from megatron.core.transformer.transformer_block import TransformerBlock

from . import ask, configs, groups, modules, shims

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from megatron.core.transformer.transformer_config import TransformerConfig

_LAYERS = 2
#: Seconds after which a step is taken to have no end.
_PATIENCE = 60
#: What one stage without pipeline, device or other packages is told instead.
_PLAIN: Mapping[str, Any] = {
    "num_layers": _LAYERS,
    "pipeline_model_parallel_size": 1,
    "virtual_pipeline_model_parallel_size": None,
    "num_layers_in_first_pipeline_stage": None,
    "num_layers_in_last_pipeline_stage": None,
    "account_for_embedding_in_pipeline_split": False,
    "account_for_loss_in_pipeline_split": False,
    "pipeline_model_parallel_layout": None,
    "overlap_p2p_comm": False,
    "overlap_p2p_comm_warmup_flush": False,
    "batch_p2p_comm": True,
    "microbatch_group_size_per_vp_stage": None,
    "defer_embedding_wgrad_compute": False,
    "gradient_accumulation_fusion": False,
    "fp8": None,
    "fp8_param": False,
    "fp4": None,
    "moe_router_padding_for_quantization": False,
    "cpu_offloading": False,
    "fine_grained_activation_offloading": False,
    "overlap_moe_expert_parallel_comm": False,
    "delay_wgrad_compute": False,
    "ep_overlap_early_attn_memory_release": False,
    "moe_shared_expert_overlap": False,
    "tp_comm_overlap": False,
    "cuda_graph_impl": "none",
    "cuda_graph_scope": None,
    "moe_enable_deepep": False,
    "moe_permute_fusion": False,
    "moe_grouped_gemm": False,
    "cp_comm_type": "p2p",
    "variable_seq_lengths": False,
}


class _Counts:
    """Equal numbers of tokens for every expert of a rank, known without a device."""

    def __init__(self, tokens: int, experts: int) -> None:
        self._each = [tokens // experts] * experts

    def tolist(self) -> list[int]:
        return self._each


def install() -> None:
    """Give experts their numbers of tokens: padded to capacity, they are equal."""
    forward = SequentialMLP.forward

    def even(self: Any, hidden: Any, tokens: Any, probs: Any) -> Any:
        del tokens
        return forward(
            self, hidden, _Counts(len(hidden), self.num_local_experts), probs
        )

    SequentialMLP.forward = even
    _no_endless_backward()
    torch._dynamo.config.disable = True  # kernels are not compiled for no device
    # Asked by recomputation whether FP8 is on, also where it never was.
    random.FP8GlobalStateManager = types.SimpleNamespace(is_fp8_enabled=lambda: False)
    random.fp8_autocast = lambda **kwargs: contextlib.nullcontext()
    random.activation_recompute_forward = lambda **kwargs: contextlib.nullcontext()


def _no_endless_backward() -> None:
    """Stop a checkpoint's backward that is called again from within itself."""
    backward, running = random.CheckpointFunction.backward, set()

    def once(ctx: Any, *args: Any) -> Any:
        if id(ctx) in running:
            raise RecursionError("the backward of a checkpoint calls itself")
        running.add(id(ctx))
        try:
            return backward(ctx, *args)
        finally:
            running.discard(id(ctx))

    random.CheckpointFunction.backward = staticmethod(once)


def _changes(case: Mapping[str, Any]) -> dict[str, Any]:
    arch, config = case["arch"], case["config"]
    changed = dict(_PLAIN)
    if config.get("recompute_method") == "uniform" and not config.get("mtp_num_layers"):
        changed["recompute_num_layers"] = 1  # the stages' own layers: see below
    kept = [m for m in config.get("recompute_modules") or [] if m != "moe_act"]
    changed["recompute_modules"] = kept or None
    if arch.get("num_moe_experts") is None:
        return changed | {"moe_token_dispatcher_type": "alltoall"}
    if config.get("moe_grouped_gemm"):
        changed["add_bias_linear"] = False  # TransformerEngine adds the biases then
    ep = config.get("ep", 1)
    experts = ep * min(arch["num_moe_experts"] // ep, 2)
    every = arch.get("moe_layer_freq", 1)
    mixed = every != 1 and (isinstance(every, int) or 0 in every)
    return changed | {
        "num_moe_experts": experts,
        "moe_router_topk": min(arch.get("moe_router_topk", 2), experts),
        "moe_router_pre_softmax": True,
        "moe_router_num_groups": None,
        "moe_router_group_topk": None,
        "moe_layer_freq": [0, 1] if mixed else 1,
        "moe_token_dispatcher_type": "alltoall",
        "moe_router_load_balancing_type": "aux_loss",
        "moe_expert_capacity_factor": 1.0,
        "moe_pad_expert_input_to_capacity": True,
    }


def _model(config: TransformerConfig, case: Mapping[str, Any], length: int) -> Any:
    block = specs.get_gpt_decoder_block_spec(
        config, use_transformer_engine=False, normalization="RMSNorm"
    )
    block.layer_norm = modules.Norm
    predictions = None
    if config.mtp_num_layers:
        predictions = specs.get_gpt_mtp_block_spec(
            config, block, use_transformer_engine=False
        )
    return GPTModel(
        config=config,
        transformer_layer_spec=block,
        vocab_size=modules.vocabulary(case),
        max_sequence_length=length,
        position_embedding_type="rope",
        share_embeddings_and_output_weights=bool(case["arch"].get("tied_embeddings")),
        mtp_block_spec=predictions,
    )


def _forward(data: Any, model: Any) -> Any:
    ids = next(data)
    losses = model(ids, ids, None, labels=ids)
    return losses, lambda loss: (loss.float().sum(), {})


class _Layer(torch.nn.Module):
    """A layer that hands on what it gets."""

    def forward(self, hidden_states: Any, context: Any, **kwargs: Any) -> Any:
        """Be there to be checkpointed."""
        return hidden_states + 0, context


def _checkpoint(config: TransformerConfig, layers: int) -> None:
    """Go through a stage of that many layers as full recomputation does."""
    block = TransformerBlock.__new__(TransformerBlock)
    torch.nn.Module.__init__(block)
    block.config, block.num_layers_per_pipeline_rank = config, layers
    block.layers = torch.nn.ModuleList(_Layer() for _ in range(layers))
    block._checkpointed_forward(
        hidden_states=torch.zeros(1, 1, 8, requires_grad=True),
        attention_mask=None,
        context=None,
        context_mask=None,
        rotary_pos_emb=None,
        attention_bias=None,
        packed_seq_params=None,
        use_inner_quantization_context=False,
    )


def run(case: Mapping[str, Any], layers: Iterable[int]) -> None:
    """Run the step on rank 0, or raise what megatron-core raises.

    ``layers`` are those of the stages, each number once: with full recomputation,
    each is gone through besides.
    """
    told = case["config"]
    world = case["world"] // told.get("pp", 1)
    groups.enter(
        world,
        0,
        configs.group_arguments(case)
        | {
            "pipeline_model_parallel_size": 1,
            "virtual_pipeline_model_parallel_size": None,
        },
    )
    if told.get("recompute_granularity") == "full":
        kept = {"recompute_num_layers": told["recompute_num_layers"]}
        config = configs.transformer_config(case, **_changes(case) | kept)
        for number in layers:
            _checkpoint(modules.of_one_stage(config), number)
    config = configs.transformer_config(case, **_changes(case))
    MTPLossLoggingHelper.tracker = {}  # it outlives a model, and has its shape
    share = 4 * told.get("tp", 1)
    model = _model(config, case, 2 * share * config.context_parallel_size)
    wrapped = DistributedDataParallel(
        config,
        DistributedDataParallelConfig(
            use_distributed_optimizer=bool(told.get("use_distributed_optimizer")),
            num_distributed_optimizer_instances=told.get(
                "num_distributed_optimizer_instances", 1
            ),
        ),
        model,
    )
    ids = torch.zeros(1, 2 * share, dtype=torch.long)
    schedules.get_forward_backward_func()(
        forward_step_func=_forward,
        data_iterator=iter([ids]),
        model=wrapped,
        num_microbatches=1,
        seq_length=2 * share,
        micro_batch_size=1,
    )


def _late(*args: object) -> NoReturn:
    raise TimeoutError(f"no end after {_PATIENCE} s")


def refusal(case: Mapping[str, Any], layers_per_stage: list[list[int]]) -> str | None:
    """Return what a step says against a case, None if nothing."""
    numbers = sorted({n for stage in layers_per_stage for n in stage})
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(_PATIENCE)
    try:
        with ask.FAKE, shims.CudaToCpu():
            run(case, numbers)
    except Exception as error:
        return ask.sentence(error)
    finally:
        signal.alarm(0)
    return None
