"""Entries of a ledger: one stored tensor each, before the axes are put in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..expr import as_expr, equals, one_of
from ..layout import (
    CP_STYLES,
    CROSS_ENTROPIES,
    DISPATCHERS,
    OPTIONAL,
    RECOMPUTE_BLOCK,
    RECOMPUTE_FULL,
    RECOMPUTE_MODULES,
    recompute_layers,
)

if TYPE_CHECKING:
    from ..architecture import Architecture
    from ..expr import Expr
    from ..problem import Training
    from .kernels import Kernels
    from .units import Unit, Units

DType = Literal["bf16", "fp32", "int64", "int32", "bool", "uint8"]
SIZES: dict[str, int] = {
    "bf16": 2,
    "fp32": 4,
    "int64": 8,
    "int32": 4,
    "bool": 1,
    "uint8": 1,
}


@dataclass(frozen=True)
class Entry:
    """``count`` equal tensors that one micro-batch keeps in one place.

    Attributes
    ----------
    name
        What the tensor is.
    dtype
        Its number format.
    shape
        The shape for a reader, in the letters of ``units``.
    numbers
        Numbers per unit, so that a tensor has ``numbers * unit`` of them.
    unit
        What the numbers are counted per.
    count
        How many such tensors there are.
    """

    name: str
    dtype: DType
    shape: str
    numbers: int
    unit: Unit
    count: int = 1

    @property
    def weight(self) -> int:
        """Bytes per unit of all its tensors."""
        return SIZES[self.dtype] * self.numbers * self.count


Entries = Iterator[Entry]


@dataclass(frozen=True)
class Context:
    """What every ledger function needs: model, training, kernels and units.

    ``precision`` is the format of the matrix products' inputs, a name of
    ``axis_values.PRECISIONS``; what is not such an input has 16 bits.
    """

    architecture: Architecture
    training: Training
    kernels: Kernels
    units: Units
    precision: str = "bf16"

    @property
    def narrow(self) -> bool:
        """Whether matrix products take inputs of less than 16 bits."""
        return self.precision not in ("bf16", "fp16")

    def exchanges(self, *styles: str) -> Expr:
        """Whether context parallelism exchanges in one of these ways.

        An axis left at its default says nothing: then the kernels decide.
        """
        axis = self.units.dims.cp_style
        if axis.constant == OPTIONAL["cp_style"]:
            return as_expr(int(self.kernels.context_parallel in styles))
        codes = [CP_STYLES.index(style) for style in styles]
        if "p2p" in styles:
            codes.append(CP_STYLES.index("auto"))
        return one_of(axis, codes)

    def dispatches(self, way: str) -> Expr:
        """Whether tokens reach their experts in this way."""
        axis = self.units.dims.dispatcher
        if axis.constant == OPTIONAL["dispatcher"]:
            return as_expr(int(self.kernels.dispatcher == way))
        return equals(axis, DISPATCHERS.index(way))

    def loss_is(self, kernel: str) -> Expr:
        """Whether the loss is this kernel's."""
        axis = self.units.dims.cross_entropy
        if axis.constant == OPTIONAL["cross_entropy"]:
            return as_expr(int(self.training.cross_entropy == kernel))
        return equals(axis, CROSS_ENTROPIES.index(kernel))

    @property
    def dtype(self) -> DType:
        """Number format of activations."""
        return "bf16" if self.kernels.parameter_bytes == 2 else "fp32"

    @property
    def hidden(self) -> int:
        """Width h of the residual stream."""
        return self.architecture.hidden

    @property
    def rope(self) -> bool:
        """Whether queries and keys are rotated."""
        return self.architecture.position == "rope"


@dataclass(frozen=True)
class Recompute:
    """One recompute choice: everything, or a set of modules."""

    code: int

    @property
    def full(self) -> bool:
        """Whether whole layers are run again."""
        return self.code >= RECOMPUTE_FULL

    @property
    def partly(self) -> bool:
        """Whether some layers may not be recomputed."""
        return self.code < RECOMPUTE_FULL or self.code > RECOMPUTE_BLOCK

    @property
    def group(self) -> int:
        """Layers that are brought back at once."""
        return recompute_layers(self.code)[0]

    def __contains__(self, module: str) -> bool:
        """Whether a module is run again."""
        index = RECOMPUTE_MODULES.index(module)
        return not self.full and bool(self.code >> index & 1)


NOTHING = Recompute(0)


def norm_statistics(
    context: Context, name: str, unit: Unit, numbers: int = 1
) -> Entries:
    """Yield the 32-bit statistics of one norm, one number per normed vector.

    A layer norm keeps mean and reciprocal deviation, an RMS norm the latter.
    """
    kinds = 1 if context.architecture.norm == "rms" else 2
    shape = "[T, 1]" if numbers == 1 else f"[T, {numbers}, 1]"
    yield Entry(f"{name} statistics", "fp32", shape, numbers, unit, kinds)


def total_weight(entries: Iterable[Entry]) -> dict[Unit, int]:
    """Sum the bytes per unit of many entries."""
    weights: dict[Unit, int] = {}
    for entry in entries:
        weights[entry.unit] = weights.get(entry.unit, 0) + entry.weight
    return weights
