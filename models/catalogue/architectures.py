"""Architectures as plain data: the form of the catalogue's files and of users' YAML."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, get_args

from ..architecture import (
    Architecture,
    Attention,
    DenseFFN,
    LatentAttention,
    Layer,
    MoE,
    NormKind,
    Position,
    QkNorm,
    Scoring,
)
from ..errors import InputError
from .node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

#: No decoder is deeper.
MOST_LAYERS = 10_000


@dataclass(frozen=True)
class Published:
    """The parameter total that a model's makers give.

    Attributes
    ----------
    parameters
        The figure as written, such as ``8,030,261,248`` or ``671B``.
    source
        Where it is written.
    includes
        What our total leaves out and this one has, as a number of parameters:
        multi-token-prediction layers or selection biases.
    """

    parameters: str
    source: str
    includes: int = 0


def _attention(node: Node) -> Attention:
    return Attention(
        heads=node.whole("heads"),
        kv_heads=node.whole("kv_heads"),
        head_dim=node.whole("head_dim"),
        qkv_bias=node.flag("qkv_bias", False),
        out_bias=node.flag("out_bias", False),
        qk_norm=node.choice("qk_norm", get_args(QkNorm), "none"),  # type: ignore[arg-type]
        window=node.maybe_whole("window"),
        sinks=node.flag("sinks", False),
    )


def _latent(node: Node) -> LatentAttention:
    return LatentAttention(
        heads=node.whole("heads"),
        q_rank=node.maybe_whole("q_rank"),
        kv_rank=node.whole("kv_rank"),
        nope_dim=node.whole("nope_dim"),
        rope_dim=node.whole("rope_dim"),
        v_dim=node.whole("v_dim"),
        window=node.maybe_whole("window"),
    )


def _dense(node: Node) -> DenseFFN:
    return DenseFFN(
        ffn=node.whole("ffn"),
        gated=node.flag("gated"),
        bias=node.flag("bias", False),
    )


def _moe(node: Node) -> MoE:
    return MoE(
        experts=node.whole("experts"),
        topk=node.whole("topk"),
        ffn=node.whole("ffn"),
        gated=node.flag("gated"),
        bias=node.flag("bias", False),
        shared_ffn=node.whole("shared_ffn", 0, least=0),
        shared_gate=node.flag("shared_gate", False),
        router_bias=node.flag("router_bias", False),
        score_bias=node.flag("score_bias", False),
        scoring=node.choice("scoring", get_args(Scoring), "softmax"),  # type: ignore[arg-type]
    )


_ATTENTIONS = {"attention": _attention, "latent_attention": _latent}
_NETWORKS = {"dense": _dense, "moe": _moe}


def _one_of(node: Node, readers: dict[str, Any]) -> Any:
    given = [name for name in readers if name in node]
    if len(given) != 1:
        raise InputError(
            f"{node.label} has exactly one of {' and '.join(readers)}, got "
            f"{' and '.join(given) or 'none'}"
        )
    inner = node.node(given[0])
    value = readers[given[0]](inner)
    inner.done()
    return value


def _layer(node: Node) -> Layer:
    layer = Layer(
        attention=_one_of(node, _ATTENTIONS),
        feed_forward=_one_of(node, _NETWORKS),
        norms=node.whole("norms", 2, least=0),
    )
    node.done()
    return layer


def _layers(blocks: list[Any]) -> Iterator[Layer]:
    """Read blocks, each a pattern of layers that is repeated."""
    for index, block in enumerate(blocks):
        node = Node(block, f"block {index} of the layers")
        repeat = node.whole("repeat", 1)
        pattern = [
            _layer(Node(layer, f"layer {number} of block {index}"))
            for number, layer in enumerate(node.items("pattern"))
        ]
        node.done()
        if not 1 <= repeat * len(pattern) <= MOST_LAYERS:
            raise InputError(
                f"an architecture has 1..{MOST_LAYERS:,} layers, got "
                f"{repeat * len(pattern):,} in block {index}"
            )
        yield from pattern * repeat


def read_published(node: Node) -> Published | None:
    """Read the published total of an entry, None if it has none."""
    if "published" not in node:
        node.skip("published")
        return None
    inner = node.node("published")
    found = Published(
        parameters=inner.text("parameters"),
        source=inner.text("source"),
        includes=inner.whole("includes", 0, least=0),
    )
    inner.done()
    return found


def read_architecture(data: object, label: str) -> Architecture:
    """Build an architecture from plain data.

    Parameters
    ----------
    data
        What a YAML or JSON file holds.
    label
        Names the file in messages.

    Raises
    ------
    InputError
        If a field is missing, unknown, of a wrong type or out of range.
    """
    node = Node(data, label)
    read_published(node)
    layers = tuple(_layers(node.items("layers")))
    found = Architecture(
        name=node.text("name"),
        hidden=node.whole("hidden"),
        vocab=node.whole("vocab"),
        layers=layers,
        mtp_layers=node.whole("mtp_layers", 0, least=0),
        norm=node.choice("norm", get_args(NormKind), "rms"),  # type: ignore[arg-type]
        norm_bias=node.flag("norm_bias", False),
        position=node.choice("position", get_args(Position), "rope"),  # type: ignore[arg-type]
        max_positions=node.whole("max_positions", 0, least=0),
        tied=node.flag("tied", False),
        embedding_norm=node.flag("embedding_norm", False),
        final_norm=node.flag("final_norm", True),
        head_bias=node.flag("head_bias", False),
        source=node.text("source", ""),
    )
    node.done()
    return found


def changed_fields(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields that differ from their defaults."""
    return {
        field.name: found
        for field in fields(value)
        if (found := getattr(value, field.name)) != field.default
        or field.default is MISSING
    }


def _plain_layer(layer: Layer) -> dict[str, Any]:
    latent = isinstance(layer.attention, LatentAttention)
    moe = isinstance(layer.feed_forward, MoE)
    found: dict[str, Any] = {
        "latent_attention" if latent else "attention": changed_fields(layer.attention),
        "moe" if moe else "dense": changed_fields(layer.feed_forward),
    }
    if layer.norms != 2:
        found["norms"] = layer.norms
    return found


def _blocks(layers: tuple[Layer, ...]) -> Iterator[tuple[int, tuple[Layer, ...]]]:
    """Split layers into repeated patterns, at each place the one that covers most."""
    start = 0
    while start < len(layers):
        best = (1, 1)
        for length in range(1, min(8, (len(layers) - start)) + 1):
            pattern = layers[start : start + length]
            times = 1
            while layers[start + times * length :][:length] == pattern:
                times += 1
            if (length == 1 or times > 1) and times * length > best[0] * best[1]:
                best = (times, length)
        times, length = best
        yield times, layers[start : start + length]
        start += times * length


def plain_architecture(value: Architecture) -> dict[str, Any]:
    """Return an architecture as plain data that reads back equal."""
    found = changed_fields(value)
    blocks = [
        {"repeat": times, "pattern": [_plain_layer(layer) for layer in pattern]}
        for times, pattern in _blocks(value.layers)
    ]
    del found["layers"]
    return {**found, "layers": blocks}
