"""How a stack runs a training: what the layout does not say and time depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import InputError

Workload = Literal["pretrain", "sft", "lora"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """Inputs of a projection beside problem, layout and profile.

    Attributes
    ----------
    workload
        ``pretrain`` and ``sft`` train every weight; ``lora`` trains adapters alone,
        so that frozen weights have no gradient, no reduction and no optimizer.
    attention
        Kernel: empty for the device's own, ``unfused``, or a generation that the
        profile knows.
    recipe
        Format of the matrix products where it is not that of the weights: a format
        with an optional recipe, such as ``fp8``, ``fp8-block``, ``mxfp8``, ``nvfp4``.
    capacity_factor
        Tokens that each expert takes, as a multiple of its even share, padded if
        there are fewer; 0 drops none.
    imbalance
        Tokens of the busiest rank's experts over the mean, at least 1.
    tp_overlap, ep_overlap
        Whether tensor-parallel collectives run behind products by user buffers, and
        the experts' exchange behind another micro-batch.
    """

    workload: Workload = "pretrain"
    attention: str = ""
    recipe: str = ""
    capacity_factor: float = 0.0
    imbalance: float = 1.0
    tp_overlap: bool = False
    ep_overlap: bool = False

    def __post_init__(self) -> None:
        """Check the figures at birth."""
        if self.workload not in get_args(Workload):
            raise InputError(
                f"a workload is one of {', '.join(get_args(Workload))}, got "
                f"{self.workload!r}"
            )
        if not (self.capacity_factor >= 0 and self.imbalance >= 1):
            raise InputError(
                "the capacity factor is at least 0 and the imbalance at least 1, got "
                f"{self.capacity_factor} and {self.imbalance}"
            )

    @property
    def routed(self) -> float:
        """Tokens that pass through the busiest experts, over their even share."""
        return self.capacity_factor or self.imbalance


#: A plain training.
PLAIN = Run()
#: How stacks run unless told otherwise: their recipes' user buffers, and their kernel
#: of attention. Sources: the recipes' ``tp_comm_overlap``; the packages that each
#: stack installs; Megatron-LM v2.5 and Megatron-DeepSpeed, which mask and multiply.
_STACKS = {
    **dict.fromkeys(("nemo", "megatron-bridge"), Run(tp_overlap=True)),
    **dict.fromkeys(("llm-foundry", "torchtitan", "nanotron"), Run(attention="fa2")),
    **dict.fromkeys(("megatron-2022", "megatron-deepspeed"), Run(attention="unfused")),
}


def run_of(stack: str) -> Run:
    """Return how a stack runs a pretraining by default.

    Parameters
    ----------
    stack
        Its name, or that of one of its layers; others run plainly.
    """
    return next(
        (r for n, r in _STACKS.items() if f"{stack}-".startswith(f"{n}-")), PLAIN
    )
