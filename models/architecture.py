"""The architecture of a transformer: every number that fixes a tensor's shape.

An ``Architecture`` is a list of ``Layer`` values, one per decoder layer, so that
dense-first and alternating models need no special case. Layers are compared by
value: layers that are equal are of one *kind*.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

from .errors import InputError

NormKind = Literal["rms", "layer"]
Position = Literal["rope", "learned", "alibi", "none"]
QkNorm = Literal["none", "head", "full"]
Scoring = Literal["softmax", "sigmoid"]


def _positive(owner: object, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(
                f"{name} of an architecture must be a whole number of at least 1, "
                f"got {value!r}"
            )


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Multi-head or grouped-query attention.

    ``heads`` query heads share ``kv_heads`` key/value heads of ``head_dim``.
    ``qk_norm`` is a norm of queries and keys per head (one weight of ``head_dim``)
    or over the full projection. ``window`` is the sliding window in tokens.
    """

    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: QkNorm = "none"
    window: int | None = None
    sinks: bool = False

    def __post_init__(self) -> None:
        """Check the sizes at birth."""
        _positive(self, "heads", "kv_heads", "head_dim")
        if self.heads % self.kv_heads:
            raise InputError(
                "the number of attention heads must be a multiple of the number of "
                f"key/value heads, got {self.heads} and {self.kv_heads}"
            )
        if self.window is not None:
            _positive(self, "window")


@dataclass(frozen=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (MLA): low-rank queries and keys/values.

    ``q_rank`` is None where queries are projected directly. A head has
    ``nope_dim + rope_dim`` query/key channels and ``v_dim`` value channels.
    """

    heads: int
    q_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    v_dim: int
    window: int | None = None

    def __post_init__(self) -> None:
        """Check the sizes at birth."""
        _positive(self, "heads", "kv_rank", "nope_dim", "rope_dim", "v_dim")
        if self.q_rank is not None:
            _positive(self, "q_rank")


@dataclass(frozen=True, kw_only=True)
class DenseFFN:
    """One feed-forward network; ``gated`` ones have two input projections."""

    ffn: int
    gated: bool
    bias: bool = False

    def __post_init__(self) -> None:
        """Check the sizes at birth."""
        _positive(self, "ffn")


@dataclass(frozen=True, kw_only=True)
class MoE:
    """A mixture of experts: ``topk`` of ``experts`` networks per token.

    ``ffn`` is the width of one expert; ``shared_ffn`` the summed width of the
    shared experts, 0 if there are none; ``shared_gate`` a learned scalar gate on
    them. ``router_bias`` is a bias of the router's projection; ``score_bias`` the
    selection bias of aux-loss-free balancing, a buffer rather than a parameter.
    """

    experts: int
    topk: int
    ffn: int
    gated: bool
    bias: bool = False
    shared_ffn: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    score_bias: bool = False
    scoring: Scoring = "softmax"

    def __post_init__(self) -> None:
        """Check the sizes at birth."""
        _positive(self, "experts", "topk", "ffn")
        if self.topk > self.experts:
            raise InputError(
                "a token cannot go to more experts than there are, got top-"
                f"{self.topk} of {self.experts}"
            )
        if self.shared_ffn < 0:
            raise InputError(
                f"the shared experts' width is at least 0, got {self.shared_ffn}"
            )


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One decoder layer: attention, feed-forward, and the number of block norms.

    ``norms`` is 2 for pre-norm layers, 4 where both inputs and outputs of
    attention and feed-forward are normed (Gemma 2), 1 for parallel blocks with
    one norm.
    """

    attention: Attention | LatentAttention
    feed_forward: DenseFFN | MoE
    norms: int = 2

    @property
    def is_moe(self) -> bool:
        """Whether the feed-forward is a mixture of experts."""
        return isinstance(self.feed_forward, MoE)


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """A decoder-only transformer.

    Attributes
    ----------
    name
        Lower case with dashes.
    hidden, vocab
        Width of the residual stream; entries of the unpadded vocabulary.
    layers
        The decoder layers in order.
    mtp_layers
        Multi-token-prediction layers after the last decoder layer.
    norm, norm_bias
        Kind of every norm and whether it has a bias.
    position, max_positions
        Position encoding and the longest sequence it was made for; a learned
        encoding holds ``max_positions * hidden`` parameters.
    tied
        Whether input and output embedding share one tensor.
    embedding_norm, final_norm, head_bias
        A norm behind the embedding; the norm before the head; a bias of the head.
    source
        Where the numbers come from.
    """

    name: str
    hidden: int
    vocab: int
    layers: tuple[Layer, ...]
    mtp_layers: int = 0
    norm: NormKind = "rms"
    norm_bias: bool = False
    position: Position = "rope"
    max_positions: int = 0
    tied: bool = False
    embedding_norm: bool = False
    final_norm: bool = True
    head_bias: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        """Check the sizes at birth."""
        _positive(self, "hidden", "vocab")
        if not self.layers:
            raise InputError("an architecture must have at least 1 layer, got 0")
        if self.mtp_layers < 0:
            raise InputError(
                "the number of multi-token-prediction layers is at least 0, got "
                f"{self.mtp_layers}"
            )
        if self.position == "learned" and self.max_positions < 1:
            raise InputError(
                "a learned position encoding needs max_positions of at least 1, got "
                f"{self.max_positions}"
            )

    def __hash__(self) -> int:
        """Hash once: a model has a hundred layers and is a key of many caches."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, name) for name in field_names(type(self))))

    @cached_property
    def kinds(self) -> tuple[Layer, ...]:
        """The distinct layers, in order of first appearance."""
        return tuple(dict.fromkeys(self.layers))

    @cached_property
    def kind_of_layer(self) -> tuple[int, ...]:
        """For each decoder layer the index of its kind in ``kinds``."""
        index = {kind: i for i, kind in enumerate(self.kinds)}
        return tuple(index[layer] for layer in self.layers)

    @property
    def num_layers(self) -> int:
        """Number of decoder layers, without MTP layers."""
        return len(self.layers)

    @property
    def is_moe(self) -> bool:
        """Whether any layer is a mixture of experts."""
        return any(kind.is_moe for kind in self.kinds)

    @cached_property
    def moe(self) -> MoE | None:
        """The first mixture of experts, or None in a dense model."""
        for kind in self.kinds:
            if isinstance(kind.feed_forward, MoE):
                return kind.feed_forward
        return None

    def describe(self) -> str:
        """One line for a person."""
        parts = [f"{self.num_layers} layers", f"hidden {self.hidden}"]
        if moe := self.moe:
            parts.append(f"{moe.experts} experts top-{moe.topk}")
        return f"{self.name}: {', '.join(parts)}, vocabulary {self.vocab}"


def field_names(cls: type) -> tuple[str, ...]:
    """Names of a dataclass's fields, for readers of users' files."""
    return tuple(f.name for f in fields(cls))
