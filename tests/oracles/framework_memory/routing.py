"""Exactly balanced routing, so that experts' row counts are known without data.

Megatron reads the counts off the device. Here every expert gets k T / E tokens; what
remains goes to the first ones, one each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from megatron.core.transformer.moe import token_dispatcher
from torch._subclasses.fake_tensor import FakeTensor

_Exchanging = token_dispatcher.MoEAlltoAllTokenDispatcher
_Gathering = token_dispatcher.MoEAllGatherTokenDispatcher
_chosen_rows = 0


def _balanced(rows: int, experts: int) -> Any:
    counts = np.full(experts, rows // experts)
    counts[: rows % experts] += 1
    return counts


class _MaskedSelect(torch.autograd.Function):
    """Selects as many rows as were routed; torch keeps the input and the mask."""

    @staticmethod
    def forward(ctx: Any, x: Any, mask: Any) -> Any:
        ctx.save_for_backward(x, mask)
        return x.new_empty(_chosen_rows)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return torch.zeros_like(ctx.saved_tensors[0]), None


def _masked_select(self: Any, mask: Any) -> Any:
    if self.requires_grad:
        return _MaskedSelect.apply(self, mask)
    return self.new_empty(_chosen_rows)


def _preprocess(self: Any, routing_map: Any) -> Any:
    """Count tokens as ``MoEAlltoAllTokenDispatcher.preprocess`` would."""
    global _chosen_rows
    if self.drop_and_pad:
        return _original_preprocess(self, routing_map)
    tokens, experts = routing_map.size(0), self.num_experts
    ep, tp, local = self.ep_size, self.tp_size, self.num_local_experts
    _chosen_rows = self.num_out_tokens = tokens * self.config.moe_router_topk
    counts = _balanced(_chosen_rows, experts)
    first, last = self.local_expert_indices[0], self.local_expert_indices[-1]
    mine = counts[first : last + 1]
    # The orders by expert and back again lie on the device too.
    chunks = np.arange(experts * tp)
    self.sort_input_by_local_experts = chunks.reshape(-1, local).T.ravel()
    self.restore_output_by_local_experts = chunks.reshape(local, -1).T.ravel()
    if ep > 1 or tp > 1:
        self.input_splits = counts.reshape(ep, local).sum(1).tolist()
        self.output_splits = [int(mine.sum())] * ep
        self.output_splits_tp = np.array([int(mine.sum()) * ep] * tp)
        self.num_global_tokens_per_local_expert = np.tile(mine, (tp * ep, 1))
        return mine * ep * tp
    self.num_global_tokens_per_local_expert = counts.reshape(-1, local)
    return counts


def _postprocess(self: Any, tokens: Any, probs: Any) -> Any:
    """Select a rank's rows of the gathered tokens, all ranks routing alike."""
    global _chosen_rows
    ranks = self.tp_size * self.ep_size
    sent = probs.size(0) // ranks * self.router_topk
    first, last = self.local_expert_indices[0], self.local_expert_indices[-1]
    counts = _balanced(sent, probs.size(1))[first : last + 1] * ranks
    _chosen_rows = int(counts.sum())
    rows, _, weights = _original_postprocess(self, tokens, probs)
    return rows, counts, weights


_original_postprocess = _Gathering.dispatch_postprocess
_original_preprocess = _Exchanging.preprocess
_original_sort = token_dispatcher.sort_chunks_by_idxs


def _sort_chunks(
    rows: Any, sizes: Any, order: Any, probs: Any = None, fused: bool = False
) -> Any:
    # The fused kernel takes tensors of numbers, of which only the length matters.
    if fused:
        sizes, order = (
            torch.zeros(len(given), dtype=torch.long)
            if isinstance(given, np.ndarray)
            else given
            for given in (sizes, order)
        )
    return _original_sort(rows, sizes, order, probs=probs, fused=fused)


def _remember_lists() -> None:
    """Let tensors made of lists or of one number be read back, though fake."""
    make, fill = torch.tensor, torch.full
    plain_list, fake_list = torch.Tensor.tolist, FakeTensor.tolist

    def tensor(data: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("pin_memory", None)  # pinning needs a device
        made = make(data, *args, **kwargs)
        if isinstance(data, (list, np.ndarray)) and np.asarray(data).ndim == 1:
            made.numbers = [int(number) for number in data]
        return made

    def full(size: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        made = fill(size, value, *args, **kwargs)
        if len(size) == 1:
            made.numbers = [int(value)] * size[0]
        return made

    def read(original: Any) -> Any:
        return lambda self: (
            list(self.numbers) if hasattr(self, "numbers") else original(self)
        )

    torch.tensor, torch.full = tensor, full
    torch.Tensor.tolist = read(plain_list)
    FakeTensor.tolist = read(fake_list)


def install() -> None:
    """Make both dispatchers, sorting by expert and torch's selection balanced."""
    torch.Tensor.masked_select = _masked_select
    _Exchanging.preprocess = _preprocess
    _Gathering.dispatch_postprocess = _postprocess
    _Exchanging._maybe_dtoh_and_synchronize = lambda self, point, tokens=None: tokens
    token_dispatcher.sort_chunks_by_idxs = _sort_chunks
    _remember_lists()
