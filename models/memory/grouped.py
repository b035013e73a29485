"""Layers recomputed in groups, or the first of a chunk alone.

In groups of n a chunk keeps the input of each group's first layer, and brings back n
layers at once; recomputing the first n layers keeps their inputs, and all that the
others keep. A chunk is taken to hold its kinds of layer in the order of the model's
first ones. Source: transformer/transformer_block.py of Megatron-Core 0.16.1
(_checkpointed_forward).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..axis_values import RECOMPUTE_FULL, recompute_layers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .moments import Moment
    from .tally import Board, Tally


def is_grouped(code: int) -> bool:
    """Whether a recompute choice looks at a chunk as a whole."""
    return code > RECOMPUTE_FULL


def split(code: int, layers: Sequence[int]) -> list[tuple[int, int]]:
    """Return for each kind how many inputs alone, and how many whole layers, stay.

    Parameters
    ----------
    code
        A grouped recompute choice.
    layers
        Layers of a chunk by kind.
    """
    group, block = recompute_layers(code)
    found, start = [], 0
    for count in layers:
        if block:
            again = min(max(block - start, 0), count)
            found.append((again, count - again))
        else:
            starts = -(-(start + count) // group) - -(-start // group)
            found.append((starts, 0))
        start += count
    return found


def correct(board: Board, moment: Moment, tally: Tally) -> None:
    """Replace, in the columns of grouped choices, what layers keep.

    Parameters
    ----------
    board
        The components, with the whole layers of every kind.
    moment
        What is alive.
    tally
        Its sum, in which every layer keeps its input alone; changed in place.
    """
    for column, choice in enumerate(board.choices):
        if not is_grouped(choice.recompute):
            continue
        for layers, held in moment.chunks:
            parts = split(choice.recompute, layers)
            for kind, (inputs, whole) in enumerate(parts):
                alone = board.tallies[f"layer {kind}"][:, column]
                entire = board.tallies[f"whole layer {kind}"][:, column]
                fewer = inputs - layers[kind]
                tally[:, column] += held * (fewer * alone + whole * entire)


def regrouped(moment: Moment, code: int) -> list[tuple[str, int]]:
    """Return what is kept and how often, layers split as a choice says.

    Parameters
    ----------
    moment
        What is alive.
    code
        The recompute choice.
    """
    if not is_grouped(code):
        return list(moment.kept)
    found = [(n, times) for n, times in moment.kept if not n.startswith("layer ")]
    for layers, held in moment.chunks:
        for kind, (inputs, whole) in enumerate(split(code, layers)):
            found.append((f"layer {kind}", held * inputs))
            found.append((f"whole layer {kind}", held * whole))
    return found
