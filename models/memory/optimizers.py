"""Recipes of an optimizer: bytes per parameter, and what sharding divides.

Letters: w weights, g gradients, o optimizer states with master weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import unknown_name
from ..expr import at_least, ceil_div, where

if TYPE_CHECKING:
    from ..expr import Expr
    from ..layout import Dims


@dataclass(frozen=True)
class Recipe:
    """Bytes per parameter of weights, gradients and optimizer states.

    ``states`` counts master weights; ``source`` says where the figures come from.
    ``apart`` are the states of parameters that are no projection, where they differ:
    norms, biases, embeddings and the head. With ``factored`` a matrix has besides so
    many bytes for each of its rows and columns, and a vector for each number.
    """

    name: str
    weights: int
    gradients: int
    states: int
    source: str
    apart: int | None = None
    factored: int = 0

    @property
    def total(self) -> int:
        """Bytes per parameter where nothing is sharded."""
        return self.weights + self.gradients + self.states


RECIPES = (
    Recipe(
        "megatron-adam",
        2,
        4,
        12,
        "Megatron-LM docs, distributed optimizer: bf16 parameters, fp32 gradients; "
        "fp32 master weights and two fp32 moments",
    ),
    Recipe(
        "megatron-adam-bf16-grads",
        2,
        2,
        12,
        "Megatron-LM docs, distributed optimizer: bf16 parameters, bf16 gradients",
    ),
    Recipe(
        "megatron-adam-bf16-state",
        2,
        4,
        8,
        "Megatron-LM --use-precision-aware-optimizer --exp-avg-dtype bf16 "
        "--exp-avg-sq-dtype bf16, remainders off: fp32 master weights, two bf16 "
        "moments",
    ),
    Recipe(
        "megatron-adam-bf16-remainders",
        2,
        4,
        6,
        "the same with store_param_remainders, its default with TransformerEngine 2.1 "
        "or newer: the lower halves of fp32 master weights, two bf16 moments",
    ),
    Recipe(
        "megatron-muon",
        2,
        4,
        8,
        "Megatron-LM --optimizer muon: fp32 master weights; one fp32 momentum for "
        "matrices, Adam's two moments for embeddings, head and vectors",
        apart=12,
    ),
    Recipe(
        "primus-adam",
        2,
        2,
        10,
        "Primus projection: bf16 gradients; 2-byte remainder of split master weights "
        "and two fp32 moments",
    ),
    Recipe(
        "adam-fp32",
        4,
        4,
        8,
        "fp32 weights and gradients, two fp32 moments (torch.optim.AdamW)",
    ),
    Recipe(
        "adam-bf16",
        2,
        2,
        4,
        "everything in bf16, no master weights (torch.optim.AdamW of a bf16 model)",
    ),
    Recipe(
        "muon-fp32",
        4,
        4,
        4,
        "fp32 weights and gradients; torch.optim.Muon for projections, "
        "torch.optim.AdamW for the rest",
        apart=8,
    ),
    Recipe(
        "adafactor-fp32",
        4,
        4,
        0,
        "fp32 weights and gradients, second moments by rows and columns "
        "(transformers.Adafactor without first moments)",
        factored=4,
    ),
    Recipe(
        "adafactor-bf16",
        2,
        2,
        0,
        "the same of a bf16 model; second moments stay in 32 bits",
        factored=4,
    ),
    Recipe(
        "sgd",
        2,
        4,
        4,
        "Megatron-LM --optimizer sgd without momentum: fp32 master weights",
    ),
    Recipe(
        "sgd-momentum",
        2,
        4,
        8,
        "Megatron-LM --optimizer sgd: fp32 master weights and momentum",
    ),
)


def recipe(name: str) -> Recipe:
    """Return a recipe by name.

    Raises
    ------
    InputError
        If there is none of this name.
    """
    for candidate in RECIPES:
        if candidate.name == name:
            return candidate
    raise unknown_name("optimizer", name, (r.name for r in RECIPES))


@dataclass(frozen=True)
class Part:
    """One part of a model's state: bytes per parameter and its sharding.

    ``stage`` is the sharding stage from which the part is divided: 1 optimizer
    states, 2 gradients, 3 weights.
    """

    name: str
    per_parameter: int
    stage: int

    def local(self, count: Expr, shards: Expr, dims: Dims) -> Expr:
        """Return a rank's bytes of this part for ``count`` parameters.

        Parameters
        ----------
        count
            Parameters of the rank before sharding.
        shards
            Ranks that hold the same ones: dp * cp, or edp for experts.
        dims
            The axes, of which the sharding stage is read.
        """
        whole = self.per_parameter * count
        if dims.sharding.hi < self.stage:
            return whole
        divided = at_least(dims.sharding, self.stage)
        return where(divided, ceil_div(whole, shards), whole)


def parts(chosen: Recipe) -> tuple[Part, ...]:
    """Return weights, gradients and optimizer states of a recipe."""
    return (
        Part("weights", chosen.weights, 3),
        Part("gradients", chosen.gradients, 2),
        Part("optimizer states", chosen.states, 1),
    )
