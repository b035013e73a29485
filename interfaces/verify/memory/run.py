"""The numbers of one configuration, and the letters of the page on memory.

The only things used here are the classes that hold a saved problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ....models.architecture import Architecture
    from ..saved import Training


def exact(number: int, divisor: int) -> int:
    """Divide where nothing may remain."""
    quotient, rest = divmod(number, divisor)
    assert rest == 0, f"{divisor} does not divide {number}"
    return quotient


@dataclass(frozen=True)
class Config:
    """One layout; ``recompute`` names modules, or is {"full"}."""

    tp: int
    pp: int
    vpp: int
    cp: int
    ep: int
    etp: int
    mbs: int
    sp: bool
    split: str
    recompute: frozenset[str]
    stage: int
    dp: int
    edp: int
    m: int


@dataclass(frozen=True)
class Run:
    """A model, its training and one layout, with the letters of the page."""

    model: Architecture
    training: Training
    config: Config

    #: e, bytes of a number in activations and weights.
    e = 2

    @cached_property
    def h(self) -> int:
        """Return the hidden width."""
        return self.model.hidden

    @cached_property
    def n(self) -> int:
        """Tokens of a rank's sequence shard."""
        return exact(self.training.seq_len * self.config.mbs, self.config.cp)

    @cached_property
    def T(self) -> int:
        """Tokens of the residual stream on a rank."""
        return exact(self.n, self.config.tp if self.config.sp else 1)

    @cached_property
    def rows(self) -> int:
        """A rank's rows of the word embeddings, the vocabulary padded."""
        return 128 * -(-self.model.vocab // (128 * self.config.tp))

    def statistics(self, vectors: int) -> int:
        """Bytes a norm keeps of so many vectors: one or two 32-bit numbers each."""
        return vectors * (4 if self.model.norm == "rms" else 8)
