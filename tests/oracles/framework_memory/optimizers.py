"""States of other optimizers than Megatron's, on a rank's own parameters.

A case names one under ``rule``: ``adamw`` and ``muon`` of torch (the latter for
projections, AdamW for the rest) or ``adafactor`` of transformers. One step runs on
fake tensors, after which each optimizer's tensors are counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from . import model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .settings import Case

Record = dict[str, Any]


def _is_projection(name: str, parameter: torch.Tensor) -> bool:
    tables = ("word_embeddings", "position_embeddings", "output_layer")
    return parameter.dim() == 2 and not any(table in name for table in tables)


def _made(rule: str, named: list[tuple[str, torch.nn.Parameter]]) -> list[Any]:
    parameters = [p for _, p in named]
    if rule == "adamw":
        return [torch.optim.AdamW(parameters, foreach=False)]
    if rule == "adafactor":
        from transformers.optimization import Adafactor

        plain = {"scale_parameter": False, "relative_step": False}
        return [Adafactor(parameters, lr=1e-3, **plain)]
    inner = [p for name, p in named if _is_projection(name, p)]
    rest = [p for name, p in named if not _is_projection(name, p)]
    return [
        torch.optim.Muon(inner),
        *([torch.optim.AdamW(rest, foreach=False)] if rest else []),
    ]


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def record(case: Case) -> Record:
    """Return bytes of weights, gradients and states; scalars are apart."""
    named = list(model.build(case).named_parameters())
    for _, parameter in named:
        parameter.grad = torch.empty_like(parameter)
    made = _made(case["rule"], named)
    for optimizer in made:
        optimizer.step()
    states = [
        tensor
        for optimizer in made
        for kept in optimizer.state.values()
        for tensor in kept.values()
        if isinstance(tensor, torch.Tensor)
    ]
    gradients = [p.grad for _, p in named if p.grad is not None]
    return {
        "params": sum(p.numel() for _, p in named),
        "weights": _bytes(p for _, p in named),
        "gradients": _bytes(gradients),
        "states": _bytes(t for t in states if t.dim()),
        "scalars": _bytes(t for t in states if not t.dim()),
    }
