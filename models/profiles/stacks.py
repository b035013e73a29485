"""Profiles of a stack: its layer on the laws of the device's family.

Stack layers were fitted to whole steps on one set of kernels and links, the smooth laws
of a family of devices, and judged there on models left out. On another set they do not
hold, so that a stack always comes with its family's.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from ..errors import InputError
from .load import layer_names, load_profile, profile_of

if TYPE_CHECKING:
    from ..architecture import Architecture
    from ..cluster import Device
    from ..problem import Problem
    from .profile import Profile

#: The family of devices whose laws a device follows.
_FAMILIES = {
    **dict.fromkeys(("a100-40", "a100-80"), "ampere"),
    **dict.fromkeys(("h100", "h200", "h800"), "hopper"),
    **dict.fromkeys(("b200", "b300", "gb200", "gb300"), "blackwell"),
    **dict.fromkeys(("mi300x", "mi325x"), "cdna3"),
    **dict.fromkeys(("mi350x", "mi355x"), "cdna4"),
}


def family_of(device: Device) -> str:
    """Return the name of a device's family: ``hopper``, ``cdna3``; empty if none."""
    return _FAMILIES.get(device.name, "")


def fitting_stacks(device: Device, architecture: Architecture) -> tuple[str, ...]:
    """Return the stack layers fitted on a device's family for models of a kind.

    A layer is named ``STACK-FAMILY``, and ``-moe`` or another word follows where it
    was fitted to mixtures of experts or to dense models alone.
    """
    family = family_of(device)
    if not family:
        return ()
    found = []
    for name in layer_names("stack"):
        _, here, kind = f"{name}-".partition(f"-{family}-")
        if here and (not kind or kind.startswith("moe") == architecture.is_moe):
            found.append(name)
    return tuple(found)


def check_stack(stack: str, device: Device, architecture: Architecture) -> None:
    """Check that a stack layer was fitted on such devices and models.

    Raises
    ------
    InputError
        If there is no such layer, or it is of another family or kind of model.
    """
    fitting = fitting_stacks(device, architecture)
    if stack in fitting:
        return
    kind = "mixtures of experts" if architecture.is_moe else "dense models"
    known = ", ".join(fitting) or "none, so leave the stack out"
    raise InputError(
        f"the stack must be a layer fitted to {kind} on {device.name} or its family, "
        f"got {stack[:60]!r}; there is {known}"
    )


@cache
def stack_profile(family: str, stack: str) -> Profile:
    """Return a family's profile with a stack layer on it.

    It is calibrated when the stack is: what was fitted, and judged on models left
    out, is the whole with the family's device and cluster layers.
    """
    known = load_profile(family, stack=stack)
    return replace(known, calibrated=known.layers["stack"].calibrated)


def profile_for(problem: Problem) -> Profile:
    """Return the profile of a problem: its stack's, or the device's own without one.

    Raises
    ------
    InputError
        If nothing is known of the device's vendor.
    """
    device = problem.cluster.device
    if not problem.stack:
        return profile_of(device)
    return stack_profile(family_of(device), problem.stack)
