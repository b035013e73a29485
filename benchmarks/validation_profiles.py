"""Which profile projects a published run: its device's, with its stack's own layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..models.profiles import family_of, layer_names, profile_of, stack_profile
from .validation_stacks import era_of

if TYPE_CHECKING:
    from ..models.cluster import Device
    from ..models.profiles import Profile
    from .truth import Setting

_KNOWN: dict[tuple[str, str, tuple[str, ...]], Profile] = {}
#: Stacks whose layer stands in where a stack has none for the device.
_INSTEAD = {
    "nemo": "megatron-bridge",
    "megatron-bridge": "nemo",
    "primus": "megatron-core",
    "megatron-core": "nemo",
    "galvatron": "megatron-core",
}


def profile_for(one: Setting) -> Profile:
    """Return the profile of a run."""
    kind = "moe" if one.problem.architecture.is_moe else "dense"
    kinds: tuple[str, ...] = (f"{kind}-{era_of(one.release)}", kind)
    if one.run.workload != "pretrain":
        kinds = ("finetune", *kinds)
    return _profile(one.problem.cluster.device, one.stack, kinds)


def base_profile(device: Device, stack: str = "") -> Profile:
    """Return the profile that the stack layers of a device's family are fitted on.

    Its kernels follow the family's smooth laws: stacks fitted on one set of kernels
    do not hold on another.
    """
    family = family_of(device)
    if not family:
        return profile_of(device, stack=stack)
    return stack_profile(family, stack)


def layer_of(device: Device, stack: str, kinds: tuple[str, ...]) -> str:
    """Return the stack layer for a device, empty where none was fitted.

    Parameters
    ----------
    device, stack
        What ran, under what.
    kinds
        What may follow the names of stack and family, the best first.
    """
    family, known = family_of(device), layer_names("stack")
    tried = stack
    for _ in range(4):
        for name in (*(f"{tried}-{family}-{k}" for k in kinds), f"{tried}-{family}"):
            if name in known:
                return name
        if tried not in _INSTEAD:
            break
        tried = _INSTEAD[tried]
    return ""


def _profile(device: Device, stack: str, kinds: tuple[str, ...]) -> Profile:
    key = (device.name, stack, kinds)
    if key not in _KNOWN:
        _KNOWN[key] = base_profile(device, layer_of(device, stack, kinds))
    return _KNOWN[key]
