"""What the readers of several families share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...architecture import Architecture, Attention, DenseFFN, Layer
from ...errors import InputError
from ..text import brief

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..node import Node

#: More layers than any model has; a larger count would only fill memory.
MOST_LAYERS = 10_000
#: What ``layer_types`` may name.
_KINDS = ("full_attention", "sliding_attention")


def layer_count(node: Node, field: str = "num_hidden_layers") -> int:
    """Return the number of layers, which must be one that can be built."""
    found = node.whole(field)
    if found > MOST_LAYERS:
        raise InputError(
            f"{field} of {node.label} must be at most {MOST_LAYERS:,}, got {found:,}"
        )
    return found


def key_value_heads(node: Node, heads: int, *, optional: bool = False) -> int:
    """Return the key/value heads; null means one per query head.

    Families whose default is a number must give the field: a missing one would be
    guessed.
    """
    field = "num_key_value_heads"
    if field not in node.names() and not optional:
        raise InputError(f"{node.label} needs the field {field}")
    return node.whole(field, heads)


def head_width(node: Node, hidden: int, heads: int) -> int:
    """Return the width of a head, by default the hidden width shared out."""
    if "head_dim" in node:
        return node.whole("head_dim")
    node.skip("head_dim")
    if hidden % heads:
        raise InputError(
            f"{node.label} needs the field head_dim: the hidden width {hidden} is no "
            f"multiple of {heads} heads"
        )
    return hidden // heads


def grouped(
    node: Node,
    hidden: int,
    *,
    bias: bool = False,
    out_bias: bool | None = None,
    optional: bool = False,
    **more: Any,
) -> Attention:
    """Read grouped-query attention from the usual fields.

    ``bias`` is of queries, keys and values, and of the output unless ``out_bias``
    says otherwise.
    """
    heads = node.whole("num_attention_heads")
    return Attention(
        heads=heads,
        kv_heads=key_value_heads(node, heads, optional=optional),
        head_dim=head_width(node, hidden, heads),
        qkv_bias=bias,
        out_bias=bias if out_bias is None else out_bias,
        **more,
    )


def gated(node: Node, *, bias: bool = False) -> DenseFFN:
    """Read a gated dense network from the usual field."""
    return DenseFFN(ffn=node.whole("intermediate_size"), gated=True, bias=bias)


def windows(
    node: Node, layers: int, window: int | None, usual: Sequence[bool]
) -> list[int | None]:
    """Return each layer's window.

    Parameters
    ----------
    node
        The configuration; ``layer_types`` says which layers slide.
    layers
        Number of layers.
    window
        The window of layers that slide.
    usual
        Which layers slide where ``layer_types`` is not given.
    """
    kinds = node.items("layer_types", [])
    if "layer_types" not in node:
        return [window if slides else None for slides in usual]
    if len(kinds) != layers:
        raise InputError(
            f"layer_types of {node.label} must name each of the {layers} layers, got "
            f"{len(kinds)} names"
        )
    for kind in kinds:
        if kind not in _KINDS:
            raise InputError(
                f"layer_types of {node.label} are {' or '.join(_KINDS)}; other kinds "
                f"of layer are out of scope, got {brief(kind)}"
            )
    return [window if kind == _KINDS[1] else None for kind in kinds]


def sparse_layers(node: Node, layers: int) -> list[bool]:
    """Return which layers are mixtures in Qwen's families."""
    step = node.whole("decoder_sparse_step", 1)
    dense = node.items("mlp_only_layers", [])
    for index in dense:
        if isinstance(index, bool) or not isinstance(index, int):
            raise InputError(
                f"mlp_only_layers of {node.label} must be layers' numbers, got "
                f"{brief(index)}"
            )
    return [i not in dense and (i + 1) % step == 0 for i in range(layers)]


def build(
    node: Node,
    name: str,
    layers: Sequence[Layer],
    *,
    tied: bool = False,
    **more: Any,
) -> Architecture:
    """Build the architecture from its layers and the usual fields."""
    return Architecture(
        name=name,
        hidden=node.whole("hidden_size"),
        vocab=node.whole("vocab_size"),
        layers=tuple(layers),
        max_positions=node.whole("max_position_embeddings", 0, least=0),
        tied=node.flag("tie_word_embeddings", tied),
        source=f"a Hugging Face config.json, {node.text('model_type')}",
        **more,
    )
