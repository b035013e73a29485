"""The explicit pipeline layout of Megatron: which layer lies in which stage.

A layout is written as letters, ``E`` the embedding, ``t`` a decoder layer, ``m`` a
multi-token-prediction layer, ``L`` the loss; ``|`` ends a stage. ``x*n`` repeats a
letter and ``(...)*n`` a part without parentheses of its own; commas are ignored.
Stage ``v * pp + r`` is chunk ``v`` of pipeline rank ``r``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from ..errors import InputError

LETTERS = "EtmL"
_MAX_LENGTH = 200_000
_GROUP = re.compile(r"\((?P<part>[^)]+)\)\*(?P<times>\d{1,9})")
_LETTER = re.compile(r"(?P<part>.)\*(?P<times>\d{1,9})")


@dataclass(frozen=True)
class PipelineLayout:
    """The letters of every stage, in the order of the model."""

    stages: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> PipelineLayout:
        """Read a layout; unknown characters are kept, for a rule to report.

        Raises
        ------
        InputError
            If the repeats multiply to an absurd length.
        """
        written = text.replace(",", "")
        for pattern in (_GROUP, _LETTER):
            written = _unroll(pattern, written)
        return PipelineLayout(tuple(written.split("|")))

    @cached_property
    def letters(self) -> str:
        """The letters of all stages joined."""
        return "".join(self.stages)

    @property
    def unknown(self) -> str:
        """Characters that stand for no layer, each once."""
        return "".join(sorted(set(self.letters) - set(LETTERS)))

    def chunks(self, pp: int) -> int:
        """Stages of one rank; 1 where the stages do not divide over the ranks."""
        return 1 if len(self.stages) % pp else len(self.stages) // pp

    def mtp_in_last_chunks(self, pp: int) -> bool:
        """Whether every prediction layer lies in the last chunk of its rank."""
        last = (self.chunks(pp) - 1) * pp
        return all("m" not in stage for stage in self.stages[:last])

    @property
    def mtp_together(self) -> bool:
        """Whether all prediction layers lie in one stage."""
        return sum("m" in stage for stage in self.stages) <= 1


def _unroll(pattern: re.Pattern[str], text: str) -> str:
    found = list(pattern.finditer(text))
    grown = sum(len(m["part"]) * int(m["times"]) for m in found)
    if len(text) + grown > _MAX_LENGTH:
        raise InputError(
            f"a pipeline layout has at most {_MAX_LENGTH:,} letters once its repeats "
            f"are written out, got {len(text) + grown:,}"
        )
    return pattern.sub(lambda m: m["part"] * int(m["times"]), text)
