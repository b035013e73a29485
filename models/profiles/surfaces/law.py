"""What a law of kernel times is: a formula over sizes with named parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The peaks that a law's fractions are of.

    Attributes
    ----------
    flops
        Dense peak of the kernel's number format, in FLOP/s.
    bandwidth
        Of the memory, or of the link for a collective, in bytes/s.
    units
        Streaming multiprocessors (or compute units) that share the work.
    width
        Bytes of one number of the operands.
    """

    flops: float
    bandwidth: float
    units: int
    width: float = 2.0


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A positive parameter with its prior: log-normal around ``prior``.

    Attributes
    ----------
    name
        Shown in the profile.
    prior
        Median of the prior, in the parameter's own unit.
    spread
        Standard deviation of its logarithm.
    most, least
        Bounds.
    """

    name: str
    prior: float
    spread: float
    most: float = float("inf")
    least: float = 1e-15


@dataclass(frozen=True, kw_only=True)
class Law:
    """A formula of kernel times.

    Attributes
    ----------
    name
        As the files of profiles have it.
    sizes
        What a caller gives, and in the domain of a fit.
    parameters
        In the order in which ``seconds`` takes them.
    seconds
        Time of arrays of sizes under parameters on a machine, in seconds.
    coordinates
        Positive coordinates of the surface that corrects the law, from the sizes.
    steps
        Covariates of the correction (rows, covariates), or None: how much rounding up
        to tiles and waves adds.
    rising
        Coordinates along which the corrected time must not fall from knot to knot;
        only where every coordinate is a size.
    """

    name: str
    sizes: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    seconds: Callable[[Floats, Mapping[str, Floats], Machine], Floats]
    coordinates: Callable[[Mapping[str, Floats]], dict[str, Floats]]
    steps: Callable[[Mapping[str, Floats], Machine], Floats] | None = None
    rising: tuple[str, ...] = ()

    @property
    def priors(self) -> Floats:
        """Medians of the priors."""
        return np.array([p.prior for p in self.parameters])


def either(compute: Any, traffic: Any, sharpness: float) -> Floats:
    """Join two times that overlap: (c^r + t^r)^(1/r), the longer one for large r."""
    longer = np.maximum(compute, traffic)
    ratio = np.minimum(compute, traffic) / np.maximum(longer, 1e-300)
    joined: Floats = longer * (1 + ratio**sharpness) ** (1 / sharpness)
    return joined
