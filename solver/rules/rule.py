"""What a rule is: an id, a sentence, a source, and a body on the axes.

Letters of the sentences: W world size, N nodes, S sequence length, L layers,
H attention heads, KV key/value heads, E experts, B global batch, m micro-batches
of one data-parallel rank, n = tp * cp, D devices of a scale-up domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from ...models.architecture import Attention, LatentAttention
from ...models.errors import InputError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...models.expr import Expr
    from ...models.layout import Dims
    from ...models.problem import Problem

Kind = Literal["hard", "advice"]
#: The stage at which the framework itself refuses; ``never`` where it silently
#: changes the configuration or loses layers.
Where = Literal[
    "config",
    "groups",
    "micro-batches",
    "build",
    "first forward",
    "schedule",
    "launcher only",
    "never",
]
#: Releases of each dialect that rules speak of, oldest first.
DIALECTS = {"megatron": ("0.14", "0.15", "0.16")}


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a rule's body may use: the problem's constants and the axes."""

    problem: Problem
    dims: Dims

    @property
    def layers(self) -> int:
        """L, without MTP layers."""
        return self.problem.architecture.num_layers

    @property
    def world(self) -> int:
        """W."""
        return self.problem.cluster.world_size

    @property
    def domain(self) -> int:
        """D."""
        return self.problem.cluster.domain_size

    @cached_property
    def heads(self) -> tuple[int, ...]:
        """H of every kind of layer."""
        kinds = self.problem.architecture.kinds
        return tuple(sorted({k.attention.heads for k in kinds}))

    @cached_property
    def kv_heads(self) -> tuple[int, ...]:
        """KV of every kind of layer that shares key/value heads."""
        found = [k.attention for k in self.problem.architecture.kinds]
        return tuple(sorted({a.kv_heads for a in found if isinstance(a, Attention)}))

    @cached_property
    def latent(self) -> bool:
        """Whether any layer has multi-head latent attention."""
        kinds = self.problem.architecture.kinds
        return any(isinstance(k.attention, LatentAttention) for k in kinds)

    @cached_property
    def constants(self) -> dict[str, object]:
        """The letters of the sentences and their values."""
        training, moe = self.problem.training, self.problem.architecture.moe
        return {
            "W": self.world,
            "S": training.seq_len,
            "B": training.global_batch,
            "L": self.layers,
            "H": "/".join(map(str, self.heads)),
            "KV": "/".join(map(str, self.kv_heads)) or "-",
            "E": moe.experts if moe else 0,
            "D": self.domain,
        }


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One fact about what a framework accepts.

    Attributes
    ----------
    id
        Name in reports and proofs.
    sentence
        The rule in words, with the letters of this module.
    source
        Where the framework says so.
    body
        The condition a legal configuration meets, from the problem's facts.
    where
        The stage at which the framework refuses.
    kind
        ``hard`` rules always hold; ``advice`` holds where a space asks for it.
    dialect, since, until
        The framework and its first and last release with the rule; an empty
        ``until`` means it still holds.
    """

    id: str
    sentence: str
    source: str
    body: Callable[[Facts], Expr]
    where: Where
    kind: Kind = "hard"
    dialect: str = "megatron"
    since: str = ""
    until: str = ""


def parse_dialect(text: str) -> tuple[str, str]:
    """Split ``name@release``; a bare name means the newest release known.

    Raises
    ------
    InputError
        If the dialect or the release is unknown.
    """
    name, at, release = text.partition("@")
    if name not in DIALECTS:
        raise unknown_name("dialect", name, DIALECTS)
    if not at:
        return name, DIALECTS[name][-1]
    if release not in DIALECTS[name]:
        known = ", ".join(f"{name}@{r}" for r in DIALECTS[name])
        raise InputError(
            f"a dialect names a release whose rules are known ({known}), got "
            f"{text[:60]!r}"
        )
    return name, release
