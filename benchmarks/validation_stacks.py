"""Stack layers and what each is fitted to: groups of published runs, and factors.

Factors are few for each stack. The device's kernels and the links keep their values.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stack:
    """One stack layer.

    Attributes
    ----------
    name
        ``STACK-FAMILY`` or ``STACK-FAMILY-moe``.
    groups
        Groups of runs, see ``validation_groups``.
    device
        A device of the family: its profile holds the priors.
    devices
        Devices whose runs are taken.
    factors
        What is fitted.
    given
        Factors that the stack's own code tells, and are not fitted.
    moe
        Whether mixtures are taken, or dense models; None takes both.
    era
        ``early`` or ``late`` releases alone, see ``era_of``; empty takes every one.
    every
        One run in so many is taken, in the order of the table.
    """

    name: str
    groups: tuple[str, ...]
    device: str
    devices: tuple[str, ...]
    factors: tuple[str, ...]
    given: tuple[tuple[str, float], ...] = ()
    moe: bool | None = None
    era: str = ""
    every: int = 1


#: The first release in which Megatron-Bridge's mixtures are not bound by the host:
#: partial CUDA graphs are in its recipes from then on.
_LATE = "26.04"


def era_of(release: str) -> str:
    """Return whether a container's release is early or late; unnamed ones are late."""
    return "early" if release and release < _LATE else "late"


def _s(*names: str) -> tuple[str, ...]:
    return tuple(f"stack.{name}" for name in names)


_AMPERE, _HOPPER = ("a100-40", "a100-80"), ("h100",)
_BLACKWELL = ("b200", "b300", "gb200", "gb300")
_EIGHT = ("products", "small_products", "attention", "passes", "cast")
_EXPERTS = ("gemm.bf16.grouped", "memory.permute")
_FSDP = ("products", "attention", "passes", "sharding_overlap", "step")

#: Megatron before 2023 and DeepSpeed's pipeline engine reduce gradients after the
#: last backward, behind nothing. Source: NVIDIA/Megatron-LM v2.5 training.py and
#: distributed.py; DeepSpeed runtime/pipe/engine.py, _exec_reduce_grads.
_AFTER = (("stack.dp_window", 0.0), ("stack.dp_tail", 1.0))

#: Every stack layer that is fitted.
STACKS = (
    Stack(
        "llm-foundry-ampere",
        ("llm-foundry",),
        "a100-80",
        _AMPERE,
        _s(*_FSDP, "host_layer", "stragglers"),
    ),
    Stack(
        "llm-foundry-hopper",
        ("llm-foundry",),
        "h100",
        _HOPPER,
        _s(*_FSDP, "small_products", "host_layer", "stragglers"),
    ),
    Stack(
        "megatron-2022-ampere",
        ("sc21 + korthikanti",),
        "a100-80",
        _AMPERE,
        _s("products", "score_passes", "tp_backward", "step"),
        given=_AFTER,
    ),
    Stack(
        "megatron-deepspeed-ampere",
        ("vtrain single", "vtrain multi"),
        "a100-80",
        _AMPERE,
        _s(
            *("products", "passes", "score_passes", "tp_backward", "host_layer"),
            *("host_tp", "step"),
        ),
        given=_AFTER,
        every=6,
    ),
    Stack(
        "nemo-hopper-dense",
        ("dgxc pretrain bf16", "dgxc pretrain fp8", "nemo hopper"),
        "h100",
        _HOPPER,
        _s(*_EIGHT, "tp_forward", "step", "stragglers"),
        moe=False,
    ),
    # Fine-tuning has steps of a second, whose constant pretraining does not tell.
    Stack(
        "nemo-hopper-finetune",
        (
            *("dgxc pretrain bf16", "dgxc pretrain fp8", "nemo hopper"),
            *("dgxc finetune bf16", "dgxc finetune fp8"),
        ),
        "h100",
        _HOPPER,
        _s(*_EIGHT, "tp_forward", "step", "stragglers"),
        moe=False,
    ),
    Stack(
        "megatron-bridge-blackwell-dense",
        ("nemo blackwell",),
        "gb200",
        _BLACKWELL,
        _s(*_EIGHT, "tp_forward", "sharding_overlap"),
        moe=False,
    ),
    Stack(
        "megatron-bridge-hopper-moe",
        ("nemo moe", "dgxc pretrain bf16", "dgxc pretrain fp8"),
        "h100",
        _HOPPER,
        (*_s("small_products", "passes", "cast", "host_moe", "ep_exposed"), *_EXPERTS),
        moe=True,
    ),
    *(
        Stack(
            f"megatron-bridge-blackwell-moe-{era}",
            ("nemo moe",),
            "gb200",
            _BLACKWELL,
            (
                *_s("small_products", "passes", "cast", "host_moe", "ep_exposed"),
                *_EXPERTS,
            ),
            moe=True,
            era=era,
        )
        for era in ("early", "late")
    ),
    Stack(
        "megatron-core-blackwell",
        ("simumax b200",),
        "b200",
        _BLACKWELL,
        (*_s("products", "attention", "passes", "tp_forward", "step"), _EXPERTS[0]),
    ),
    Stack(
        "torchtitan-hopper",
        ("torchtitan",),
        "h100",
        _HOPPER,
        _s(
            *("products", "small_products", "attention", "passes", "cast"),
            *("tp_forward", "sharding_overlap", "step"),
        ),
    ),
    Stack(
        "nanotron-hopper",
        ("playbook 8", "playbook many"),
        "h100",
        _HOPPER,
        _s(
            *("products", "passes", "tp_forward", "host_layer", "dp_window"),
            *("step", "stragglers"),
        ),
        every=6,
    ),
    Stack(
        "maxtext-hopper",
        ("dgxc jax",),
        "h100",
        _HOPPER,
        _s("products", "small_products", "passes", "sharding_overlap", "step"),
    ),
    Stack(
        "maxtext-cdna4",
        ("maxtext amd",),
        "mi355x",
        ("mi355x", "mi350x"),
        (
            *_s("products", "attention", "passes", "sharding_overlap", "ep_exposed"),
            *_EXPERTS,
        ),
        every=4,
    ),
)
