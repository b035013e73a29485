"""What a rule is: an id, a sentence, a source, and a body on axes and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...models.expr import Expr
    from .facts import Facts

Kind = Literal["hard", "advice", "known-bad"]
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
#: Whose code a rule restates. ``core`` and ``launcher`` refuse by themselves;
#: ``layers`` are accepted configurations that lose or repeat a layer; ``step``
#: shows in a training step of a small model only; ``product`` rules are this
#: planner's own, one writing of each configuration.
Checker = Literal[
    "core",
    "launcher",
    "layers",
    "step",
    "transformer-engine",
    "fsdp",
    "environment",
    "primus",
    "torchtitan",
    "dualpipe",
    "deepspeed",
    "accelerate",
    "product",
]
CHECKERS: tuple[str, ...] = get_args(Checker)
#: Those whose own code the oracles of the tests ask about every rule.
ASKED = ("core", "layers", "step", "deepspeed", "accelerate")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One fact about what a framework accepts.

    Attributes
    ----------
    id
        Name in reports and proofs.
    sentence
        The rule in words, with the letters of ``facts``.
    source
        Where the framework says so.
    body
        The condition a legal configuration meets, from the facts.
    where
        The stage at which the framework refuses.
    checker
        Whose code the rule restates.
    kind
        ``hard`` rules always hold; ``advice`` and ``known-bad`` hold where a space
        asks for them.
    dialect, since, until
        The framework and its first and last release with the rule; an empty
        ``since`` or ``until`` means that every known release on that side has it.
    """

    id: str
    sentence: str
    source: str
    body: Callable[[Facts], Expr]
    where: Where
    checker: Checker = "core"
    kind: Kind = "hard"
    dialect: str = "megatron"
    since: str = ""
    until: str = ""

    @property
    def machine_checked(self) -> bool:
        """Whether the framework, asked without a GPU, refuses for this reason.

        So does a framework that loses layers, or whose training step fails.
        """
        seen = self.checker in ASKED and self.where != "launcher only"
        shown = self.where != "never" or self.checker == "layers"
        return self.kind == "hard" and seen and shown

    @property
    def out_of_reach(self) -> bool:
        """Whether no machine can be asked, for a reason that the rule itself names.

        Only the launcher refuses, or nothing does; another library, the environment
        or Primus does; it is soft; or it is this planner's own writing.
        """
        silent = self.where in ("launcher only", "never") or self.kind != "hard"
        elsewhere = ("transformer-engine", "environment", "primus", "product")
        return silent or self.checker in elsewhere

    @property
    def decides(self) -> bool:
        """Whether breaking it makes a configuration illegal for core and launcher."""
        return self.kind == "hard" and self.checker in ("core", "launcher", "layers")
