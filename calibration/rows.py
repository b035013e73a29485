"""Measured times of one kernel, as readers hand them to fits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..models.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ..models.profiles.surfaces.law import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Times of a kernel by its sizes.

    Attributes
    ----------
    kernel
        As profiles name it: ``gemm.bf16``, ``attention.fa3.d128``,
        ``collective.all_reduce``.
    device
        Name of the device in the catalogue.
    sizes
        One array for each size.
    seconds
        Measured times.
    source
        Where they come from: ``source``, ``version``, ``licence``, ``table``.
    """

    kernel: str
    device: str
    sizes: Mapping[str, Floats]
    seconds: Floats
    source: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that there is one size of each kind for each time."""
        for name, values in self.sizes.items():
            if values.shape != self.seconds.shape:
                raise InputError(
                    f"rows of {self.kernel} need one {name} for each time, got "
                    f"{values.shape} and {self.seconds.shape}"
                )

    def __len__(self) -> int:
        """Return the number of measurements."""
        return len(self.seconds)

    def at(self, chosen: NDArray[Any]) -> Rows:
        """Return the rows of a mask or of indices."""
        sizes = {name: values[chosen] for name, values in self.sizes.items()}
        return replace(self, sizes=sizes, seconds=self.seconds[chosen])

    def ordered(self) -> Rows:
        """Return the rows in the order of their sizes, so that fits are repeatable."""
        return self.at(np.lexsort((self.seconds, *self.sizes.values())))
