"""The axes a layer's time depends on, as arrays, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..layout import RECOMPUTE_FULL, RECOMPUTE_MODULES
from .kernels import WIDTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..expr import Array
    from .collectives import Collective, Links
    from .work import Floats

#: What a layer's time depends on. ``shards`` and ``expert_shards`` are dp * cp and edp
#: where gradients are sharded over them, else 1; ``gathered`` is 1 where weights are
#: too.
LAYER_AXES = (
    "tp",
    "cp",
    "ep",
    "etp",
    "mbs",
    "sp",
    "recompute",
    "shards",
    "expert_shards",
    "gathered",
)


@dataclass(frozen=True, eq=False)
class Shape:
    """Distinct layouts of a layer, one an entry of every array.

    Attributes
    ----------
    columns
        The axes by name.
    seq_len
        Tokens of one sequence.
    links
        Collective times.
    """

    columns: Mapping[str, Array]
    seq_len: int
    links: Links
    _known: dict[tuple[str, float], Floats] = field(default_factory=dict)

    def axis(self, name: str) -> Floats:
        """Return one axis as floats."""
        return self.columns[name].astype(np.float64)

    @cached_property
    def tp(self) -> Floats:
        """Tensor-parallel size."""
        return self.axis("tp")

    @cached_property
    def cp(self) -> Floats:
        """Context-parallel size."""
        return self.axis("cp")

    @cached_property
    def tokens(self) -> Floats:
        """Tokens of one micro-batch in a rank's matrix products."""
        return self.axis("mbs") * self.seq_len / self.cp

    @cached_property
    def sp(self) -> Floats:
        """Whether the sequence is also cut over tp, 1 or 0."""
        return self.axis("sp")

    @cached_property
    def own_tokens(self) -> Floats:
        """Tokens of one micro-batch between tensor-parallel regions."""
        return np.where(self.sp > 0, self.tokens / self.tp, self.tokens)

    def recomputes(self, module: str) -> Floats:
        """Return 1 where the backward runs a module's forward again, else 0."""
        codes = self.columns["recompute"]
        full = codes >= RECOMPUTE_FULL
        bit = RECOMPUTE_MODULES.index(module)
        share: Floats = (full | ((codes >> bit & 1) == 1)).astype(np.float64)
        return share

    @cached_property
    def full_recompute(self) -> Floats:
        """Return 1 where whole layers run again, else 0."""
        share: Floats = (self.columns["recompute"] >= RECOMPUTE_FULL).astype(np.float64)
        return share

    def enter(self, width: float) -> Floats:
        """Time entering a tensor-parallel region: gathering the sequence if cut."""
        if not self.sp.any():
            return np.zeros_like(self.tp)
        gather = self._over_tp("all_gather", width)
        time: Floats = np.where(self.sp > 0, gather, 0.0)
        return time

    def leave(self, width: float) -> Floats:
        """Time leaving a tensor-parallel region: summing, scattered if cut."""
        time = self._over_tp("all_reduce", width)
        if self.sp.any():
            scatter = self._over_tp("reduce_scatter", width)
            time = np.where(self.sp > 0, scatter, time)
        return time

    def _over_tp(self, kind: Collective, width: float) -> Floats:
        """Time a collective of a micro-batch's tokens; most widths come again."""
        key = kind, width
        if key not in self._known:
            volume = self.tokens * width * WIDTH
            ones = np.ones_like(self.tp)
            self._known[key] = self.links.ring(kind, self.tp, ones, volume)
        return self._known[key]
