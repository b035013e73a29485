"""Buffers of gradients and parameters, and the optimizer's states, of a rank.

A case has besides the model's settings: ``distopt`` distributed optimizer, ``grad32``
gradients in 32 bits, ``moments`` the format of Adam's moments if not 32 bits, and
``remainders`` whether then only the lower halves of master weights are held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from megatron.core import parallel_state
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
)
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer

from . import model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .settings import Case

Record = dict[str, Any]


def _wrapped(case: Case) -> Any:
    sharded = case.get("distopt", False)
    config = DistributedDataParallelConfig(
        use_distributed_optimizer=sharded,
        grad_reduce_in_fp32=case.get("grad32", True),
        overlap_grad_reduce=sharded,
        bucket_size=None,
    )
    built = model.build(case)
    return DistributedDataParallel(built.config, config, built)


def _optimizer(case: Case, wrapped: Any) -> Any:
    chosen: Record = {
        "optimizer": case.get("optimizer", "adam"),
        "sgd_momentum": case.get("momentum", 0.9),
        "lr": 1e-4,
        "bf16": True,
        "params_dtype": torch.bfloat16,
        "use_distributed_optimizer": case.get("distopt", False),
    }
    if case.get("moments"):
        dtype = getattr(torch, case["moments"])
        chosen |= {
            "use_precision_aware_optimizer": True,
            "exp_avg_dtype": dtype,
            "exp_avg_sq_dtype": dtype,
            "store_param_remainders": case.get("remainders", True),
        }
    return get_megatron_optimizer(
        OptimizerConfig(**chosen), [wrapped], use_gloo_process_groups=False
    )


def _states(inner: Any) -> Iterator[torch.Tensor]:
    """Allocate and yield what a fused ``step`` allocates when it first runs."""
    if hasattr(inner, "get_momentums"):  # TransformerEngine's FusedSGD
        for group in inner.param_groups:
            if group["momentum"]:
                yield from inner.get_momentums(group["params"])[0]
        return
    for group in inner.param_groups:
        for parameter in group["params"]:
            narrow = parameter.dtype == torch.bfloat16
            remainders = inner.store_param_remainders and narrow
            inner.initialize_state(parameter, remainders)
            yield from inner.state[parameter].values()


def _total(tensors: Iterable[torch.Tensor]) -> int:
    """Sum the bytes of tensors; a storage that several view counts once."""
    storages = (tensor.untyped_storage() for tensor in tensors)
    return sum({s._cdata: s.nbytes() for s in storages}.values())


def record(case: Case) -> Record:
    """Return bytes and numbers of each buffer, and bytes of the optimizer's tensors.

    ``masters`` are weights of the optimizer's own, ``states`` all it holds besides;
    the model's weights and what lies in a buffer are in neither.
    """
    wrapped = _wrapped(case)
    buffers = wrapped.buffers + wrapped.expert_parallel_buffers
    narrow = [b.param_data for b in buffers if b.param_data is not None]
    optimizer = _optimizer(case, wrapped)
    model_owns = {
        t.untyped_storage()._cdata for t in [*wrapped.module.parameters(), *narrow]
    }
    masters, states = 0, 0
    for one in optimizer.chained_optimizers:
        groups = one.optimizer.param_groups
        parameters = (p for group in groups for p in group["params"])
        masters += _total(
            p for p in parameters if p.untyped_storage()._cdata not in model_owns
        )
        states += _total(_states(one.optimizer))
    return {
        "params": sum(p.numel() for p in wrapped.module.parameters()),
        "dp": parallel_state.get_data_parallel_world_size(with_context_parallel=True),
        "edp": parallel_state.get_expert_data_parallel_world_size(),
        "buf_numel": [b.numel for b in buffers],
        "buckets": [len(b.buckets) for b in buffers],
        "grad_buf": [_total([b.grad_data]) for b in buffers],
        "param_buf": [
            0 if b.param_data is None else _total([b.param_data]) for b in buffers
        ],
        "masters": masters,
        "states": states,
    }
