"""A measured kernel: a fitted law, the surface that corrects it, a band, a domain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from .grid import Grid, grid_of
from .law import Floats, Machine
from .laws import LAWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from .law import Law

#: Rows timed at once: what fits a core's cache.
_CHUNK = 8192


@dataclass(frozen=True, eq=False, kw_only=True)
class Kernel:
    """Times of one kernel by its sizes.

    Attributes
    ----------
    law, machine, parameters
        The law and what was fitted.
    fixed
        Sizes that all measurements share.
    domain
        Least and greatest measured value of each size.
    surface
        Logarithm of measured over law's time, by the law's coordinates; None where
        the law alone had the smaller left-out error.
    steps
        Weights of the law's covariates.
    band
        Half-width of the 90 % band of the logarithm of a time, by coordinates.
    """

    law: Law
    machine: Machine
    parameters: Floats
    fixed: Mapping[str, float] = field(default_factory=dict)
    domain: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    surface: Grid | None = None
    steps: Floats | None = None
    band: Grid | None = None

    def seconds(self, *, beyond: bool = False, **sizes: Any) -> Floats:
        """Return times in seconds of sizes that broadcast.

        Raises
        ------
        InputError
            If a size is missing, or lies outside the domain and ``beyond`` is False.
            With ``beyond`` the law extrapolates under the correction of the edge.
        """
        z, shape = self._sizes(sizes)
        if not beyond and not self._inside(z).all():
            raise InputError(self._complaint(z))
        count = next(iter(z.values())).size
        time = np.empty(count)
        for start in range(0, count, _CHUNK):
            part = {name: values[start : start + _CHUNK] for name, values in z.items()}
            time[start : start + _CHUNK] = self._time(part)
        return time.reshape(shape)

    def half_width(self, **sizes: Any) -> Floats:
        """Return the relative half-width of the 90 % band.

        It is doubled outside the domain, where nothing was measured.
        """
        z, shape = self._sizes(sizes)
        if self.band is None:
            raise InputError(f"the kernel of law {self.law.name} has no band")
        width = np.expm1(self.band.at(self.law.coordinates(z)))
        return np.where(self._inside(z), width, 2 * width).reshape(shape)

    def inside(self, **sizes: Any) -> NDArray[np.bool_]:
        """Say for each entry whether its sizes were measured."""
        z, shape = self._sizes(sizes)
        return self._inside(z).reshape(shape)

    def _time(self, z: Mapping[str, Floats]) -> Floats:
        time = self.law.seconds(self.parameters, z, self.machine)
        if self.surface is None:
            return time
        correction = self.surface.at(self.law.coordinates(z))
        if self.steps is not None and self.law.steps is not None:
            correction = correction + self.law.steps(z, self.machine) @ self.steps
        corrected: Floats = time * np.exp(correction)
        return corrected

    def _sizes(
        self, sizes: Mapping[str, Any]
    ) -> tuple[dict[str, Floats], tuple[int, ...]]:
        """Complete the sizes with the fixed ones and flatten them to one length."""
        known = {**self.fixed, **sizes}
        for name in self.law.sizes:
            if name not in known:
                raise InputError(
                    f"a time of {self.law.name} needs {', '.join(self.law.sizes)}; "
                    f"{name} is missing"
                )
        arrays = np.broadcast_arrays(
            *(np.asarray(known[name], dtype=float) for name in self.law.sizes)
        )
        flat = [np.ascontiguousarray(a).ravel() for a in arrays]
        return dict(zip(self.law.sizes, flat, strict=True)), arrays[0].shape

    def _inside(self, z: Mapping[str, Floats]) -> NDArray[np.bool_]:
        within = np.ones(next(iter(z.values())).shape, dtype=bool)
        for name, (least, most) in self.domain.items():
            within &= (z[name] >= least) & (z[name] <= most)
        return within

    def _complaint(self, z: Mapping[str, Floats]) -> str:
        for name, (least, most) in self.domain.items():
            outside = (z[name] < least) | (z[name] > most)
            if outside.any():
                return (
                    f"{name} of {self.law.name} is measured from {least:g} to "
                    f"{most:g}, got {z[name][outside][0]:g}; pass beyond=True to let "
                    "the law extrapolate"
                )
        raise AssertionError("no size lies outside")


def kernel_of(document: Mapping[str, Any]) -> Kernel:
    """Read a kernel from a layer's table.

    Raises
    ------
    InputError
        If the law is unknown or the entry is damaged.
    """
    if document.get("law") not in LAWS:
        raise InputError(
            f"a kernel's law is one of {', '.join(LAWS)}, got {document.get('law')!r}"
        )
    law = LAWS[document["law"]]
    try:
        values = document["parameters"]
        parameters = np.array([float(values[p.name]) for p in law.parameters])
        return Kernel(
            law=law,
            machine=Machine(**document["machine"]),
            parameters=parameters,
            fixed=document.get("fixed", {}),
            domain={k: (a, b) for k, (a, b) in document["domain"].items()},
            surface=_grid(document, "surface"),
            steps=np.array(document["steps"]) if "steps" in document else None,
            band=_grid(document, "band"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"a kernel of law {law.name} lacks a field or has a wrong one: {error!r}"
        ) from error


def _grid(document: Mapping[str, Any], name: str) -> Grid | None:
    return grid_of(document[name]) if name in document else None
