"""What one layer costs at each recompute level, on one skeleton.

An *item* is a decoder layer of one kind, or a multi-token-prediction layer, at one
recompute level. Items of a chunk are interchangeable, so that counts of them say all
there is to say about a stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...models.expr import axes, value
from ...models.layout import RECOMPUTE_FULL, Dims
from ...models.memory import MemoryModel
from ...models.memory.kernels import kernels_on
from ..rules import Facts, rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...models.layout import Layout
    from ...models.problem import Problem


@dataclass(frozen=True)
class Item:
    """One layer at one recompute level, for one micro-batch on one device.

    Attributes
    ----------
    kind
        Index into the architecture's kinds; their number for a
        multi-token-prediction layer.
    code
        What is recomputed, coded as the axis ``recompute``.
    kept
        Bytes between forward and backward.
    moment
        Bytes that its backward adds for a moment.
    once
        Names of what a rank keeps once if it holds such an item.
    """

    kind: int
    code: int
    kept: int
    moment: int
    once: frozenset[str]

    @property
    def bytes(self) -> tuple[int, int, int, frozenset[str]]:
        """Kind and bytes: all that tells two levels apart but their code."""
        return self.kind, self.kept, self.moment, self.once


def legal_codes(
    problem: Problem, layout: Layout, codes: Iterable[int] | None = None
) -> tuple[int, ...]:
    """Return the recompute choices that no rule forbids on a skeleton.

    Parameters
    ----------
    problem, layout
        The skeleton; its own recompute choice does not matter.
    codes
        Choices to look at; every set of modules, and full, if None.
    """
    wanted = sorted(set(range(RECOMPUTE_FULL + 1) if codes is None else codes))
    point = layout.point()
    dims = skeleton_dims(layout, tuple(wanted))
    facts = Facts(problem=problem, dims=dims)
    bodies = [r.body(facts) for r in rules(problem.dialect) if r.kind == "hard"]
    bodies = [b for b in bodies if any(a.name == "recompute" for a in axes(b))]
    return tuple(
        c for c in wanted if all(value(b, {**point, "recompute": c}) for b in bodies)
    )


def skeleton_dims(layout: Layout, codes: tuple[int, ...]) -> Dims:
    """Return the axes of one skeleton, all fixed but ``recompute``."""
    values = {name: (code,) for name, code in layout.point().items()}
    return Dims.of(values | {"recompute": codes})


def memory_model(
    problem: Problem, layout: Layout, codes: tuple[int, ...]
) -> MemoryModel:
    """Return the memory of one skeleton over recompute choices."""
    dims = skeleton_dims(layout, codes)
    kernels = kernels_on(problem.cluster.device)
    return MemoryModel(problem.architecture, problem.training, dims, kernels)


def items_of(model: MemoryModel, codes: Sequence[int]) -> tuple[Item, ...]:
    """Return the bytes of every kind of layer at every level.

    Of levels that cost the same bytes in a kind, only the first stays: it names no
    module that the kind does not have.
    """
    arch = model.architecture
    names = [(f"layer {k}", f"layer {k} moment") for k in range(len(arch.kinds))]
    if arch.mtp_layers:
        names.append(("mtp", f"layer {arch.kind_of_layer[-1]} moment"))
    found: dict[tuple[int, int, int, frozenset[str]], Item] = {}
    sizes = {
        name: model.saved(name)
        for name in dict.fromkeys(n for pair in names for n in pair)
    }
    for kind, (kept, moment) in enumerate(names):
        for code in codes:
            at = {"recompute": code}
            once = frozenset(e.name for e in model.board.entries("model", code))
            item = Item(
                kind, code, value(sizes[kept], at), value(sizes[moment], at), once
            )
            found.setdefault(item.bytes, item)
    return tuple(found.values())
