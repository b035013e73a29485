"""A stage plan in the words of a launcher: layout letters, and what is recomputed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from ...models.dialects.pipeline_layout import PipelineLayout
from ...models.errors import InputError
from ...models.expr import value
from ...models.layout import recompute_label
from ..answer import Projection
from ..rules import Facts, Structures, rules
from .items import skeleton_dims

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ...models.layout import Layout
    from ...models.problem import Problem
    from .plan import StagePlan
    from .skeleton import Skeleton


@dataclass(frozen=True, kw_only=True)
class Stages:
    """Explicit stages of one skeleton, with what was proven about them.

    Attributes
    ----------
    layout
        The skeleton; its split and recompute axes do not matter.
    pipeline_layout
        Megatron's ``pipeline_model_parallel_layout``.
    recompute
        What each decoder layer recomputes, then what each multi-token-prediction
        layer does.
    per_rank
        Peak bytes of each pipeline rank.
    projection
        With the pipeline simulated.
    bound
        No stages of this skeleton are faster, in seconds.
    """

    layout: Layout
    pipeline_layout: str
    recompute: tuple[str, ...]
    per_rank: tuple[int, ...]
    projection: Projection
    bound: float

    @property
    def gap(self) -> float:
        """Share of the step time between it and the bound."""
        return max(1 - self.bound / self.projection.step_time_s, 0.0)


def stages_of(plan: StagePlan) -> Stages:
    """Write a plan down."""
    at = plan.skeleton
    found = at.times.projection(plan.counts)
    seconds = float(found.step_time[0])
    rows = plan.counts[..., :-2].tolist()
    return Stages(
        layout=at.layout,
        pipeline_layout=letters(sizes(plan), at.problem.architecture.mtp_layers),
        recompute=tuple(recompute_label(code) for code in codes(plan)),
        per_rank=tuple(at.memory.peak(r, row) for r, row in enumerate(rows)),
        projection=Projection(
            step_time_s=seconds,
            tokens_per_s_per_gpu=float(found.tokens_per_s_per_gpu[0]),
            mfu=float(found.mfu[0]),
            bubble_fraction=float(found.bubble_fraction[0]),
            band=at.times.profile.interval(seconds),
            breakdown={part: float(s[0]) for part, s in found.breakdown.items()},
        ),
        bound=plan.bound,
    )


def sizes(plan: StagePlan) -> tuple[int, ...]:
    """Return the decoder layers of every chunk along the model."""
    layers = [i for level in plan.skeleton.levels[:-1] for i in level]
    return tuple(plan.counts[..., layers].sum(axis=2).T.ravel().tolist())


def letters(layers: Sequence[int], mtp: int) -> str:
    """Write the layers of every chunk as a layout string, equal stages as repeats."""
    stages = ["t" * n for n in layers]
    stages[0] = "E" + stages[0]
    stages[-1] += "m" * mtp + "L"
    text = ""
    for stage, equal in groupby(stages[:-1]):
        number = len(list(equal))
        text += f"({stage}|)*{number}" if number > 1 and stage else f"{stage}|" * number
    return text + stages[-1]


def codes(plan: StagePlan) -> list[int]:
    """Return what every layer recomputes, the heaviest levels first in a chunk.

    Layers of a kind in a chunk are interchangeable; those that recompute most come
    first, as Megatron's block method counts them.
    """
    at = plan.skeleton
    found: list[int] = []
    start = 0
    for c, size in enumerate(sizes(plan)):
        row = plan.counts[at.where(c)]
        left = [_spread(plan, row, level) for level in at.levels]
        kinds = at.problem.architecture.kind_of_layer[start : start + size]
        found += [left[kind].pop(0) for kind in kinds]
        if c == at.chunks - 1:
            found += left[-1]
        start += size
    return found


def _spread(plan: StagePlan, row: Sequence[int], level: Sequence[int]) -> list[int]:
    items = plan.skeleton.items
    lean = sorted(level, key=lambda i: items[i].kept)
    return [items[i].code for i in lean for _ in range(row[i])]


def broken_layout_rules(problem: Problem, layout: Layout, text: str) -> tuple[str, ...]:
    """Return the rules that a layout string breaks on a skeleton, by id."""
    written = PipelineLayout.parse(text)
    facts = Facts(
        problem=problem,
        dims=skeleton_dims(layout, (0,)),
        structures=Structures(layout=written),
    )
    point = layout.point() | {"recompute": 0}
    return tuple(
        rule.id
        for rule in rules(problem.dialect)
        if rule.kind == "hard" and not value(rule.body(facts), point)
    )


def counts_of(at: Skeleton, text: str, levels: Sequence[int]) -> npt.NDArray[np.int64]:
    """Read stages somebody wrote: components of every chunk, shape [pp, vpp, c].

    Parameters
    ----------
    at
        The skeleton.
    text
        A layout string with all its layers and both ends.
    levels
        What each decoder layer recomputes, coded, then each multi-token-prediction
        layer.

    Raises
    ------
    InputError
        If stages or layers are not as many as the skeleton's, or a level is not
        among its items.
    """
    stages = PipelineLayout.parse(text).stages
    arch = at.problem.architecture
    kinds = [*arch.kind_of_layer, *[at.kinds] * arch.mtp_layers]
    written = sum(stage.count("t") + stage.count("m") for stage in stages)
    if len(stages) != at.chunks or written != len(kinds) or len(levels) != len(kinds):
        raise InputError(
            f"a layout of this skeleton has {at.chunks} stages with {len(kinds)} "
            f"layers and as many levels, got {len(stages)}, {written} and {len(levels)}"
        )
    place = {(item.kind, item.code): i for i, item in enumerate(at.items)}
    found = np.zeros((at.layout.pp, at.layout.vpp, len(at.items) + 2), np.int64)
    layer = 0
    for c, stage in enumerate(stages):
        for _ in range(stage.count("t") + stage.count("m")):
            level = kinds[layer], levels[layer]
            if level not in place:
                raise InputError(
                    f"the level of a layer is one the skeleton has, got "
                    f"{recompute_label(levels[layer])} for layer {layer}"
                )
            found[at.where(c)][place[level]] += 1
            layer += 1
    found[0, 0, -2] = found[-1, -1, -1] = 1
    return found
