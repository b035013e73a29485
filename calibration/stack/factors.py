"""Factors of a stack that whole steps can tell, each with its prior.

A prior is log-normal around the factor's value in the profile that is fitted, so that
what the measurements do not say stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...models.profiles import Profile


@dataclass(frozen=True)
class Factor:
    """How far a factor may move.

    Attributes
    ----------
    spread
        Standard deviation of the logarithm; of the value itself if ``additive``.
    least, most
        Bounds.
    additive
        Whether the prior is normal: for factors whose plain value is 0.
    """

    spread: float
    least: float
    most: float
    additive: bool = False


#: Every factor that may be fitted, with its prior.
FACTORS = {
    "stack.products": Factor(0.10, 0.4, 1.3),
    "stack.small_products": Factor(0.20, 0.3, 1.5),
    "stack.attention": Factor(0.25, 0.2, 1.5),
    "stack.passes": Factor(0.25, 0.2, 1.3),
    "stack.cast": Factor(0.7, 0.05, 3.0),
    "stack.score_passes": Factor(0.3, 1.0, 30.0),
    "stack.tp_forward": Factor(0.4, 0.05, 1.0),
    "stack.tp_backward": Factor(0.4, 0.05, 1.0),
    "stack.tp_hidden": Factor(0.4, 0.05, 0.95),
    "stack.ep_exposed": Factor(0.4, 0.1, 1.0),
    "stack.dp_window": Factor(0.4, 0.02, 1.0),
    "stack.dp_tail": Factor(0.7, 0.002, 1.0),
    "stack.sharding_overlap": Factor(0.4, 1.0, 8.0),
    "stack.host_layer": Factor(0.7, 2e-5, 5e-3),
    "stack.host_moe": Factor(0.7, 2e-5, 2e-2),
    "stack.host_backward": Factor(0.3, 0.3, 3.0),
    "stack.host_tp": Factor(0.1, 0.0, 1.0, additive=True),
    "stack.step": Factor(0.7, 1e-3, 1.0),
    "stack.stragglers": Factor(0.01, 0.0, 0.1, additive=True),
    "memory.optimizer": Factor(0.4, 0.05, 1.0),
    "gemm.bf16.grouped": Factor(0.3, 0.15, 1.0),
    "memory.permute": Factor(0.5, 0.03, 1.0),
    "network.all_to_all": Factor(0.4, 0.05, 1.0),
    "scale_up.all_to_all": Factor(0.4, 0.05, 1.0),
    "network.all_gather": Factor(0.4, 0.05, 1.0),
    "network.reduce_scatter": Factor(0.4, 0.05, 1.0),
    "network.all_reduce": Factor(0.4, 0.05, 1.0),
    "scale_up.all_reduce": Factor(0.3, 0.1, 1.0),
}
_LAWS = ("stack", "memory", "network", "scale_up")


def changed(profile: Profile, values: Mapping[str, float]) -> Profile:
    """Return a profile with some of its factors replaced.

    Parameters
    ----------
    profile
        The profile.
    values
        By name, ``law.field``; ``gemm.FORMAT.field`` changes every format alike.
    """
    laws: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        section, *_, field = name.split(".")
        laws.setdefault(section, {})[field] = value
    products = laws.pop("gemm", {})
    found = replace(
        profile,
        **{
            section: replace(getattr(profile, section), **fields)
            for section, fields in laws.items()
        },
    )
    if products:
        gemm = {k: replace(law, **products) for k, law in profile.gemm.items()}
        found = replace(found, gemm=gemm)
    return found
