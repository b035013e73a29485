"""Weights, gradients and optimizer states of one pipeline rank."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from ..expr import Expr, exact_div, maximum, total
from ..parameters import (
    Tensor,
    embedding_tensors,
    head_tensors,
    layer_tensors,
    mtp_tensors,
    vocab_rows,
)
from .dummies import dummy_numbers
from .factors import factor_numbers
from .offload import on_device
from .optimizers import Part, parts, recipe
from .working import GATHERING as GATHERING
from .working import working_set

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..architecture import Architecture, Layer
    from ..layout import Dims
    from ..stages import Stage

#: Numbers in tensors by what divides them.
Numbers = Counter[str]


def numbers(tensors: Iterable[Tensor]) -> Numbers:
    """Count numbers by kind of sharding; of vocabulary tensors the width alone."""
    found: Numbers = Counter()
    for tensor in tensors:
        width = prod(tensor.shape[1:])
        found[tensor.shard] += width if tensor.shard == "vocab" else tensor.count
    return found


@dataclass(frozen=True)
class State:
    """Parameters of the ranks of one problem, and the bytes kept for each.

    Attributes
    ----------
    architecture, dims
        The model and the axes.
    optimizer
        Name of a recipe.
    vocab_multiple
        The vocabulary is padded to a multiple of this times tp.
    latent_norm
        Whether latent attention norms its compressed queries and keys.
    latent_bias
        Whether its output projection has a bias.
    projections
        Whether to count projections too; without, only norms, biases, embeddings and
        the head are counted.
    """

    architecture: Architecture
    dims: Dims
    optimizer: str
    vocab_multiple: int
    latent_norm: bool = True
    latent_bias: bool = False
    projections: bool = True

    @cached_property
    def rows(self) -> Expr:
        """A rank's rows of the padded vocabulary."""
        return vocab_rows(self.architecture, self.dims, self.vocab_multiple)

    @cached_property
    def _kinds(self) -> tuple[Numbers, ...]:
        return tuple(self.layer(kind) for kind in self.architecture.kinds)

    def layer(self, kind: Layer) -> Numbers:
        """Count the numbers of a layer by kind of sharding."""
        return numbers(self._counted(self.layer_tensors(kind)))

    def layer_tensors(self, kind: Layer) -> tuple[Tensor, ...]:
        """Return the parameters of a layer."""
        return layer_tensors(self.architecture, kind, **self._latent)

    def _counted(self, tensors: Iterable[Tensor]) -> Iterable[Tensor]:
        return [t for t in tensors if self.projections or not t.is_projection]

    @cached_property
    def others(self) -> State:
        """The same of parameters that are no projections."""
        return replace(self, projections=False)

    @property
    def _latent(self) -> dict[str, bool]:
        return {"latent_norm": self.latent_norm, "latent_bias": self.latent_bias}

    @cached_property
    def _ends(self) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        arch = self.architecture
        words = embedding_tensors(arch)[:1]
        return (
            numbers(embedding_tensors(arch)),
            numbers(head_tensors(arch)),
            numbers(self._counted(mtp_tensors(arch, **self._latent))),
            numbers(words),
        )

    @cached_property
    def _embedding_norm(self) -> Numbers:
        norm = (t for t in embedding_tensors(self.architecture) if "norm" in t.name)
        return numbers(norm)

    def numbers(self, stage: Stage) -> Numbers:
        """Count a rank's numbers by kind of sharding, before division.

        Tied embeddings are one tensor where both ends share a rank. A rank of
        multi-token prediction embeds tokens itself, with a copy of the word and
        position embeddings unless it holds them already.
        """
        embedding, head, mtp, words = self._ends
        found: Numbers = Counter()
        for chunk in stage:
            for count, kind in zip(chunk.layers, self._kinds, strict=True):
                for shard, number in kind.items():
                    found[shard] += count * number
            for shard, number in mtp.items():
                found[shard] += chunk.mtp * number
        first = any(chunk.embedding for chunk in stage)
        last = any(chunk.head for chunk in stage)
        predicts = any(chunk.mtp for chunk in stage)
        if first:
            found.update(embedding)
        if last:
            found.update(head)
        if predicts and not first:
            found.update(embedding - self._embedding_norm)
        if self.architecture.tied and last and (first or predicts):
            found.subtract(words)
        return found

    def counts(self, found: Numbers) -> tuple[Expr, Expr]:
        """Return a rank's numbers in dense tensors and in experts'."""
        dims = self.dims
        dense = [exact_div(found["column"] + found["row"], dims.tp)]
        if found["vocab"]:
            dense.append(self.rows * found["vocab"])
        expert = [exact_div(found["expert"], self._expert_ranks)]
        if found["expert-bias"]:
            expert.append(exact_div(found["expert-bias"], dims.ep))
        return total((*dense, found["replicated"])), total(expert)

    @cached_property
    def _expert_ranks(self) -> Expr:
        """Ranks that an expert layer's numbers are divided over."""
        return self.dims.ep * self.dims.etp

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Weights, gradients and optimizer states of the recipe."""
        return parts(recipe(self.optimizer))

    @cached_property
    def source(self) -> str:
        """Where the bytes per parameter come from."""
        return recipe(self.optimizer).source

    def bytes(self, stage: Stage) -> list[tuple[str, Expr]]:
        """Return each part of a rank's state, dense and experts' apart, in bytes."""
        dims = self.dims
        dense, expert = self.counts(self.numbers(stage))
        found = []
        for part in self.parts:
            shared = self._local(part, dense, self._shards)
            found.append((f"{part.name} of dense layers", shared))
            if expert.hi:
                local = self._local(part, expert, self._expert_shards)
                found.append((f"{part.name} of experts", local))
        found += self._apart(stage)
        if dims.sharding.hi >= GATHERING:
            found.append(("gathered weights", working_set(self, stage)))
        return found

    def peak(self, stage: Stage) -> Expr:
        """Return the sum of ``bytes``: parts that are never divided in one term."""
        dims = self.dims
        dense, expert = self.counts(self.numbers(stage))
        moves = dims.offload.hi > 0
        apart = [
            part
            for part in self.parts
            if part.stage <= dims.sharding.hi or (moves and part.stage == 1)
        ]
        whole = sum(p.per_parameter for p in self.parts if p not in apart)
        sizes = [whole * dense]
        sizes += [self._local(part, dense, self._shards) for part in apart]
        if expert.hi:
            sizes.append(whole * expert)
            sizes += [self._local(p, expert, self._expert_shards) for p in apart]
        sizes += [size for _, size in self._apart(stage)]
        if dims.sharding.hi >= GATHERING:
            sizes.append(working_set(self, stage))
        return total(sizes)

    def _local(self, part: Part, numbers: Expr, ranks: Expr) -> Expr:
        """Return a rank's bytes of a part on the device."""
        size = part.local(numbers, ranks, self.dims)
        return on_device(self.dims.offload, size) if part.stage == 1 else size

    def shared_numbers(self, stage: Stage) -> tuple[tuple[Expr, Expr], ...]:
        """Return a rank's dense and experts' numbers, and the ranks that share them."""
        dense, expert = self.counts(self.numbers(stage))
        return (dense, self._shards), (expert, self._expert_shards)

    def _apart(self, stage: Stage) -> list[tuple[str, Expr]]:
        """Return states that are not in proportion to parameters, in bytes."""
        chosen = recipe(self.optimizer)
        found = []
        if chosen.apart is not None:
            part = Part("states of others", chosen.apart - chosen.states, 1)
            dense, expert = self.others.counts(self.others.numbers(stage))
            size = self._local(part, dense, self._shards)
            if expert.hi:
                size = size + self._local(part, expert, self._expert_shards)
            found.append(("more states of what is no projection", size))
        if chosen.factored:
            whole = chosen.factored * factor_numbers(self, stage)
            size = on_device(self.dims.offload, whole)
            found.append(("second moments by rows and columns", size))
        return found

    def dummies(self, layers: Iterable[Layer], *, predicts: bool) -> Expr:
        """Return bytes of the dummy weight gradients of some layers.

        Parameters
        ----------
        layers
            The kinds of layer of a rank.
        predicts
            Whether it has multi-token prediction, with a projection of its own.
        """
        tensors = [t for x in layers for t in layer_tensors(self.architecture, x)]
        if predicts:
            tensors += mtp_tensors(self.architecture)
        return self.parts[0].per_parameter * dummy_numbers(tensors, self.dims)

    @cached_property
    def _shards(self) -> Expr:
        """Ranks that hold the same dense parameters."""
        return self._in_an_instance(self.dims.dp * self.dims.cp)

    @cached_property
    def _expert_shards(self) -> Expr:
        """Ranks that hold the same experts' parameters."""
        return self._in_an_instance(self.dims.edp)

    def _in_an_instance(self, ranks: Expr) -> Expr:
        """Return those that share a state: it is whole in each of several instances."""
        # Where the instances do not divide the ranks the rules refuse; a divisor
        # stays above 0 there too.
        return maximum(exact_div(ranks, self.dims.instances), 1)

    @property
    def weight_bytes(self) -> int:
        """Bytes of one weight."""
        return self.parts[0].per_parameter
