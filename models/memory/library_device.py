"""From what torch allocates to what the device must have, and the verdict.

*Reserved* memory is what torch's allocator has taken from the device: blocks of one
size that are free cannot serve a larger tensor, so that it exceeds the allocated. The
*device's* total adds the context and the communicators' buffers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

from ..errors import InputError
from ..expr import value
from .library import Held
from .library_constants import constants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..stages import Stage
    from .model import MemoryModel

Verdict = Literal["fits", "at risk", "does not fit"]
FITS: Verdict = "fits"
AT_RISK: Verdict = "at risk"
DOES_NOT_FIT: Verdict = "does not fit"

#: Instruction sets by the beginning of a device's name.
_GENERATIONS = {
    "v100": "sm70",
    "a100": "sm80",
    "h100": "sm90",
    "h200": "sm90",
    "h800": "sm90",
    "gh200": "sm90",
    "b200": "sm100",
    "b300": "sm100",
    "gb200": "sm100",
    "gb300": "sm100",
    "mi": "gfx9",
}


def generation(device: str) -> str:
    """Return a device's instruction set, such as ``sm90``; sm90 if it is unknown."""
    for name, found in _GENERATIONS.items():
        if device.lower().startswith(name):
            return found
    return "sm90"


def largest_temporary(model: MemoryModel, stage: Stage) -> int:
    """Return the largest tensor that comes and goes on a rank, in bytes.

    A copy of the logits or of the embedding's weights on a rank with an end, else
    the first projection of a feed-forward network.
    """
    units, hidden = model.context.units, model.architecture.hidden
    sizes = [
        2 * value(entry.unit.times(entry.numbers), {})
        for index, kind in enumerate(model.architecture.kinds)
        if any(chunk.layers[index] for chunk in stage) and kind
        for entry in model.board.entries(f"layer {index}", 0)
        if "first projection" in entry.name
    ]
    rows = model.state.rows
    if any(chunk.head or chunk.embedding for chunk in stage):
        sizes.append(value(units.head_weights(rows).times(2 * hidden), {}))
    if any(chunk.head for chunk in stage):
        sizes.append(value(units.logits(rows).times(2), {}))
    return max(sizes, default=0)


def reserved(allocated: int, temporary: int, *, expandable: bool = False) -> int:
    """Return what the allocator reserves where it allocates so much, in bytes.

    Parameters
    ----------
    allocated
        Bytes allocated at the peak.
    temporary
        Bytes of the largest tensor that comes and goes.
    expandable
        Whether segments expand (``PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True``),
        so that free blocks join.
    """
    profile = constants()
    if expandable:
        return int(allocated * profile.number("reserved_expandable_ratio"))
    blocks = profile.number("reserved_blocks") * temporary
    return int(allocated + blocks + profile.number("reserved_bytes"))


def communicators(sizes: Mapping[str, int]) -> tuple[Held, ...]:
    """Return the buffers of the communicator of each process group of several ranks.

    Parameters
    ----------
    sizes
        Ranks of each process group by name.
    """
    each = constants().size("communicator_bytes")
    return tuple(
        Held(f"communicator of {name}", each.bytes, each.source)
        for name, ranks in sizes.items()
        if ranks > 1
    )


def device_bytes(inside: int, sizes: Mapping[str, int]) -> int:
    """Return the device's total for so many bytes inside torch's allocator."""
    context = constants().size("context_bytes").bytes
    return inside + context + sum(held.bytes for held in communicators(sizes))


@dataclass(frozen=True)
class Band:
    """How measured peaks lie about predicted ones of a kind of run.

    ``ratios`` gives for rising probabilities the quantile of measured / predicted, of
    models that were left out of the fit.
    """

    name: str
    ratios: tuple[tuple[float, float], ...]

    def quantile(self, probability: float) -> float:
        """Return the ratio that measured / predicted stays below with a probability.

        Raises
        ------
        InputError
            If it is not between 0 and 1.
        """
        if not 0 < probability < 1:
            raise InputError(
                f"a confidence is between 0 and 1, such as 0.99, got {probability}"
            )
        below = (0.0, self.ratios[0][1])
        for point in (*self.ratios, (inf, self.ratios[-1][1])):
            if probability <= point[0]:
                width = point[0] - below[0]
                part = (probability - below[0]) / width if 0 < width < inf else 0.0
                return below[1] + part * (point[1] - below[1])
            below = point
        return below[1]


def band(name: str) -> Band:
    """Return the shipped band of a kind of run, such as ``megatron-dense``."""
    return Band(name, constants().band(name))


def verdict(
    allocated: int, reserved: int, limit: int, kind: Band, confidence: float
) -> Verdict:
    """Say whether a run fits on a device.

    ``fits`` if all that is reserved is at most the limit with the confidence; ``does
    not fit`` if what is allocated exceeds it with the confidence, for the allocator
    gives free blocks back before it fails; ``at risk`` in between.

    Parameters
    ----------
    allocated, reserved
        The device's predicted total with allocated and with reserved bytes.
    limit
        What the device has, in bytes.
    kind
        The band of such runs.
    confidence
        The probability with which the verdict is to hold.
    """
    if max(allocated, reserved) * kind.quantile(confidence) <= limit:
        return FITS
    if allocated * kind.quantile(1 - confidence) > limit:
        return DOES_NOT_FIT
    return AT_RISK
