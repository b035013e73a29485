"""Parameters, gradients, optimizer states and caches of a pipeline rank.

Written from docs/memory.md and from the modules of Megatron-Core's layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....models.architecture import Attention, DenseFFN, MoE
from .kept import first_width
from .run import exact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ....models.architecture import LatentAttention, Layer
    from .run import Run

#: Bytes per parameter of weights, gradients and optimizer states.
RECIPES = {
    "megatron-adam": (2, 4, 12),
    "megatron-adam-bf16-grads": (2, 2, 12),
    "megatron-adam-bf16-state": (2, 4, 8),
    "megatron-adam-bf16-remainders": (2, 4, 6),
    "primus-adam": (2, 2, 10),
    "adam-fp32": (4, 4, 8),
    "adam-bf16": (2, 2, 4),
    "sgd": (2, 4, 4),
    "sgd-momentum": (2, 4, 8),
}
#: A weight as a rank holds it: rows and columns.
Shape = tuple[int, int]


@dataclass(frozen=True)
class Count:
    """A rank's parameters; other groups of ranks hold the same experts."""

    dense: int = 0
    expert: int = 0

    def __add__(self, other: Count) -> Count:
        """Add two counts."""
        return Count(self.dense + other.dense, self.expert + other.expert)

    def times(self, number: int) -> Count:
        """Return the count of several of it."""
        return Count(self.dense * number, self.expert * number)


def size(shapes: Iterable[Shape]) -> int:
    """Return the numbers in weights of some shapes."""
    return sum(rows * columns for rows, columns in shapes)


def norm(run: Run, width: int) -> int:
    """Return the parameters of a norm."""
    return width * (2 if run.model.norm_bias else 1)


def attention_weights(run: Run, att: Attention) -> list[Shape]:
    """Return the shapes of the projections of attention."""
    tp, h, d = run.config.tp, run.h, att.head_dim
    packed = exact((att.heads + 2 * att.kv_heads) * d, tp)
    return [(packed, h), (h, exact(att.heads * d, tp))]


def latent_weights(run: Run, att: LatentAttention) -> list[Shape]:
    """Projections down are whole on every rank, those up divided by tp."""
    tp, h = run.config.tp, run.h
    queries = exact(att.heads * (att.nope_dim + att.rope_dim), tp)
    down, up = att.q_rank, (queries, att.q_rank or h)
    return [
        *([(down, h)] if down else []),
        up,
        (att.kv_rank + att.rope_dim, h),
        (exact(att.heads * (att.nope_dim + att.v_dim), tp), att.kv_rank),
        (h, exact(att.heads * att.v_dim, tp)),
    ]


def network_weights(run: Run, block: DenseFFN | MoE, ffn: int, by: int) -> list[Shape]:
    """Return the shapes of a feed-forward network cut over ranks."""
    wide = ffn * (2 if block.gated else 1)
    return [(exact(wide, by), run.h), (run.h, exact(ffn, by))]


def layer_weights(run: Run, layer: Layer) -> list[Shape]:
    """Shapes of the projections of a layer, one expert standing for all."""
    att, block, config = layer.attention, layer.feed_forward, run.config
    if isinstance(att, Attention):
        shapes = attention_weights(run, att)
    else:
        shapes = latent_weights(run, att)
    if isinstance(block, DenseFFN):
        return shapes + network_weights(run, block, block.ffn, config.tp)
    shapes += network_weights(run, block, block.ffn, config.etp)
    if block.shared_ffn:
        shapes += network_weights(run, block, block.shared_ffn, config.tp)
    return shapes


def layer(run: Run, kind: Layer) -> Count:
    """Return the parameters of a layer on one rank."""
    numbers = kind.norms * norm(run, run.h)
    att, block = kind.attention, kind.feed_forward
    if isinstance(att, Attention):
        numbers += size(attention_weights(run, att)) + attention_extras(run, att)
    else:
        numbers += size(latent_weights(run, att)) + norm(run, att.kv_rank)
        numbers += norm(run, att.q_rank) if att.q_rank else 0
    if isinstance(block, MoE):
        return Count(numbers) + mixture(run, block)
    numbers += size(network_weights(run, block, block.ffn, run.config.tp))
    if block.bias:
        numbers += exact(first_width(block), run.config.tp) + run.h
    return Count(numbers)


def attention_extras(run: Run, att: Attention) -> int:
    """Biases, inner norms and sinks; a bias behind a row-parallel product is whole."""
    tp, d = run.config.tp, att.head_dim
    queries, keys = att.heads * d, att.kv_heads * d
    numbers = exact(queries + 2 * keys, tp) if att.qkv_bias else 0
    numbers += run.h if att.out_bias else 0
    numbers += exact(att.heads, tp) if att.sinks else 0
    if att.qk_norm == "head":
        numbers += 2 * norm(run, d)
    elif att.qk_norm == "full":
        numbers += exact(queries + keys, tp)
    return numbers


def mixture(run: Run, moe: MoE) -> Count:
    """Return the parameters of a mixture of experts on one rank."""
    config, h = run.config, run.h
    local = exact(moe.experts, config.ep)
    dense = moe.experts * h + (moe.experts if moe.router_bias else 0)
    one = size(network_weights(run, moe, moe.ffn, config.etp))
    if moe.bias:
        one += exact(first_width(moe), config.etp) + h
    if moe.shared_ffn:
        dense += size(network_weights(run, moe, moe.shared_ffn, config.tp))
        dense += h if moe.shared_gate else 0
        if moe.bias:
            wide = moe.shared_ffn * (2 if moe.gated else 1)
            dense += exact(wide, config.tp) + h
    return Count(dense, local * one)


def mtp(run: Run) -> Count:
    """Two norms, a projection of token and state, a layer, and a final norm."""
    own = 3 * norm(run, run.h) + size([(exact(run.h, run.config.tp), 2 * run.h)])
    return Count(own) + layer(run, run.model.layers[-1])


def ends(run: Run, *, first: bool, last: bool) -> Count:
    """Embedding and head; tied ones are one tensor where both are on a rank."""
    model, table = run.model, run.rows * run.h
    embeds = first or (last and model.mtp_layers > 0)
    numbers = table if embeds else 0
    if embeds and model.position == "learned":
        numbers += model.max_positions * run.h
    if first:
        numbers += norm(run, run.h) if model.embedding_norm else 0
    if last:
        numbers += norm(run, run.h) if model.final_norm else 0
        numbers += 0 if model.tied and embeds else table
        numbers += run.rows if model.head_bias else 0
    return Count(numbers)


def state(run: Run, count: Count, kinds: list[Layer]) -> int:
    """Weights, gradients and states of a rank, and layers gathered at once."""
    config = run.config
    groups = ((count.dense, config.dp * config.cp), (count.expert, config.edp))
    total = 0
    recipe = RECIPES[run.training.optimizer]
    for per_parameter, divided_from in zip(recipe, (3, 2, 1), strict=True):
        for numbers, ranks in groups:
            whole = per_parameter * numbers
            split = config.stage >= divided_from
            total += -(-whole // ranks) if split else whole
    if config.stage == 3:
        layers = [layer(run, kind) for kind in kinds]
        total += 2 * recipe[0] * max(c.dense + c.expert for c in layers)
    return total


def dummies(run: Run, kinds: list[Layer], *, has_mtp: bool) -> int:
    """One tensor for every distinct shape of a projection on the rank."""
    shapes = {shape for kind in kinds for shape in layer_weights(run, kind)}
    if has_mtp:
        shapes.add((exact(run.h, run.config.tp), 2 * run.h))
    weights, _, _ = RECIPES[run.training.optimizer]
    return weights * size(shapes)
