"""Which profile projects a published run: its device's, with its stack's own layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..models.profiles import layer_names, profile_of
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
    kinds = (f"{kind}-{era_of(one.release)}", kind)
    return _profile(one.problem.cluster.device, one.stack, kinds)


def generation(device: Device) -> str:
    """Return the name of a device's family: ``hopper``, ``cdna3``."""
    plain = profile_of(device)
    return plain.layers["device"].name.split("-")[0]


def layer_of(device: Device, stack: str, kinds: tuple[str, ...]) -> str:
    """Return the stack layer for a device, empty where none was fitted.

    Parameters
    ----------
    device, stack
        What ran, under what.
    kinds
        What may follow the names of stack and family, the best first.
    """
    family, known = generation(device), layer_names("stack")
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
        _KNOWN[key] = profile_of(device, stack=layer_of(device, stack, kinds))
    return _KNOWN[key]
