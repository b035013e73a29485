"""A layer of a profile: factors that were fitted together, and how far to trust them.

A profile has three: the *device* (kernels), the *stack* (framework and release) and
the *cluster* (links). Each comes from its own measurements and may be replaced alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["device", "stack", "cluster"]

#: The layers, from the silicon outwards.
KINDS: tuple[Kind, ...] = get_args(Kind)

#: Which factors, by the beginning of their names, each layer may hold.
OWNED: dict[Kind, tuple[str, ...]] = {
    "device": ("gemm.", "attention.", "memory.", "band"),
    "stack": ("stack.", "memory.", "attention.", "gemm.", "band"),
    "cluster": ("scale_up.", "network.", "band"),
}


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Factors of one kind with where they come from and where they hold.

    Attributes
    ----------
    kind
        Which of the three it is.
    name
        Lower case with dashes.
    version
        Counts the fits under this name.
    calibrated
        Whether the factors were fitted to measurements, not taken from data sheets.
    factors
        Value by name, ``law.field`` or ``law.format.field``.
    sources
        For each factor where its figure comes from.
    domain
        For each kernel the least and the greatest measured value of each of its
        sizes: ``{"gemm.bf16": {"m": (1, 32768)}}``. Outside it nothing was seen.
    bands
        Relative half-width of the 90 % band of each group of kernels.
    provenance
        The measurements: one mapping for each source with its ``source``,
        ``version``, ``licence`` and ``rows``.
    tables
        Measured surfaces as their file has them; read by ``surfaces``.
    left_out
        Errors on measurements that the fit had not seen, by group.
    """

    kind: Kind
    name: str
    version: int = 1
    calibrated: bool = False
    factors: Mapping[str, float]
    sources: Mapping[str, str]
    domain: Mapping[str, Mapping[str, tuple[float, float]]] = field(
        default_factory=dict
    )
    bands: Mapping[str, float] = field(default_factory=dict)
    provenance: tuple[Mapping[str, Any], ...] = ()
    tables: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the names at birth and freeze the mappings."""
        if self.kind not in KINDS:
            raise InputError(
                f"a layer of a profile is one of {', '.join(KINDS)}, got {self.kind!r}"
            )
        for name in self.factors:
            if not name.startswith(OWNED[self.kind]):
                raise InputError(
                    f"a {self.kind} layer holds factors that begin with "
                    f"{', '.join(OWNED[self.kind])}; got {name} in {self.name}"
                )
            if not self.sources.get(name):
                raise InputError(
                    f"every factor of a layer needs a source, got none for {name} in "
                    f"{self.name}; write where the figure comes from"
                )
        for name in ("factors", "sources", "domain", "bands", "tables", "left_out"):
            value = getattr(self, name)
            object.__setattr__(self, name, MappingProxyType(dict(value)))

    @property
    def title(self) -> str:
        """Name and version, as answers show them."""
        return f"{self.name}@{self.version}"

    def outside(self, kernel: str, **sizes: float) -> list[str]:
        """Say which sizes of a kernel lie outside what was measured.

        Returns
        -------
        list of str
            One clause for each size outside, empty within the domain.
        """
        if kernel not in self.domain:
            return [f"{kernel} was not measured"]
        found = []
        for name, (least, most) in self.domain[kernel].items():
            value = sizes.get(name)
            if value is not None and not least <= value <= most:
                found.append(
                    f"{name} of {kernel} is measured from {least:g} to {most:g}, "
                    f"got {value:g}"
                )
        return found
