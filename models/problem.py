"""What is asked: a model trained on a cluster with a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from .axis_values import PRECISIONS
from .errors import InputError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .architecture import Architecture
    from .cluster import Cluster

CrossEntropy = Literal["unfused", "native-fused", "te-fused"]


@dataclass(frozen=True, kw_only=True)
class Training:
    """How the model is trained, apart from its layout.

    Attributes
    ----------
    seq_len
        Tokens of one sequence.
    global_batch
        Sequences of one step over all devices.
    precision
        Number format of the matrix products.
    optimizer
        Name of a recipe of bytes per parameter.
    cross_entropy
        The kernel of the loss, which decides how many copies of the logits live.
    dropout
        Whether hidden dropout keeps masks.
    """

    seq_len: int
    global_batch: int
    precision: str = "bf16"
    optimizer: str = "megatron-adam"
    cross_entropy: CrossEntropy = "unfused"
    dropout: bool = False

    def __post_init__(self) -> None:
        """Check the sizes at birth."""
        for name, label in (
            ("seq_len", "the sequence length"),
            ("global_batch", "the global batch"),
        ):
            value = getattr(self, name)
            if not 1 <= value <= 2**26:
                raise InputError(
                    f"{label} must be a whole number in 1..{2**26:,}, got {value:,}"
                )
        if self.precision not in PRECISIONS:
            raise unknown_name("precision", self.precision, PRECISIONS)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An architecture, a cluster, a training, a dialect, and the user's pins.

    ``pins`` gives for some axes the codes the user allows. ``stack`` names the stack
    layer whose profile gives the step times; empty for the device's own.
    """

    architecture: Architecture
    cluster: Cluster
    training: Training
    dialect: str = "megatron@0.16"
    pins: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    stack: str = ""

    def __post_init__(self) -> None:
        """Freeze the pins; check that the device has the format and fits the stack."""
        device, precision = self.cluster.device, self.training.precision
        if precision not in device.formats:
            raise InputError(
                f"the precision must be one the device has a matrix unit for, got "
                f"{precision} on {device.name}, which has {', '.join(device.formats)}"
            )
        if self.stack:
            from .profiles import check_stack

            check_stack(self.stack, device, self.architecture)
        object.__setattr__(self, "pins", MappingProxyType(dict(self.pins)))
