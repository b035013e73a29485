"""Parameters: which tensors a model has, how many numbers, and how many on a rank.

Letters: h hidden, V vocabulary, a heads, g key/value heads, d head dim, f width of a
feed-forward network, E experts.

The tensors are Megatron-Core's: queries, keys and values are one projection, the two
inputs of a gated network another. A checkpoint that keeps them apart has as many
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal

from .architecture import Attention, DenseFFN, MoE
from .local_parameters import VOCAB_MULTIPLE as VOCAB_MULTIPLE
from .local_parameters import local_count as local_count
from .local_parameters import local_counts as local_counts
from .local_parameters import vocab_rows as vocab_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .architecture import Architecture, LatentAttention, Layer

Shard = Literal["column", "row", "replicated", "vocab", "expert", "expert-bias"]


@dataclass(frozen=True)
class Tensor:
    """One parameter tensor of the whole model.

    Attributes
    ----------
    name
        As in Megatron-Core, without the prefix of the layer.
    shape
        Unsharded shape; the first dimension of an expert's tensor counts experts.
    shard
        What divides it: ``column`` and ``row`` tp, ``vocab`` tp after padding,
        ``expert`` ep and etp, ``expert-bias`` ep alone, ``replicated`` nothing.
    """

    name: str
    shape: tuple[int, ...]
    shard: Shard

    @property
    def count(self) -> int:
        """Numbers in the unsharded tensor."""
        return prod(self.shape)

    @property
    def is_matrix(self) -> bool:
        """Whether it has rows and columns on a rank; of experts each has its own."""
        dimensions = len(self.shape) - (self.shard in ("expert", "expert-bias"))
        return dimensions > 1

    @property
    def is_projection(self) -> bool:
        """Whether it is a matrix other than embeddings and the head."""
        tables = ("word_embeddings", "position_embeddings", "output_layer")
        return self.is_matrix and not self.name.startswith(tables)

    @property
    def by_rows(self) -> bool:
        """Whether parallelism divides its rows rather than its columns."""
        return self.shard == "column" or "linear_fc1" in self.name


def _norm(architecture: Architecture, name: str, width: int) -> list[Tensor]:
    tensors = [Tensor(f"{name}.weight", (width,), "replicated")]
    if architecture.norm_bias:
        tensors.append(Tensor(f"{name}.bias", (width,), "replicated"))
    return tensors


def _projection(arch: Architecture, columns: int, bias: bool) -> list[Tensor]:
    h = arch.hidden
    weight = Tensor("linear_proj.weight", (h, columns), "row")
    return [weight, Tensor("linear_proj.bias", (h,), "replicated")][: 1 + bias]


def _attention(
    arch: Architecture, attention: Attention, norms: list[Tensor]
) -> list[Tensor]:
    h, d = arch.hidden, attention.head_dim
    queries, keys = attention.heads * d, attention.kv_heads * d
    tensors = []
    if attention.sinks:
        tensors.append(Tensor("softmax_offset", (attention.heads,), "column"))
    tensors += _projection(arch, queries, attention.out_bias)
    tensors += norms
    tensors.append(Tensor("linear_qkv.weight", (queries + 2 * keys, h), "column"))
    if attention.qkv_bias:
        tensors.append(Tensor("linear_qkv.bias", (queries + 2 * keys,), "column"))
    if attention.qk_norm == "head":
        tensors += _norm(arch, "q_layernorm", d) + _norm(arch, "k_layernorm", d)
    elif attention.qk_norm == "full":
        tensors.append(Tensor("q_layernorm.weight", (queries,), "column"))
        tensors.append(Tensor("k_layernorm.weight", (keys,), "column"))
    return tensors


def _latent(
    arch: Architecture,
    attention: LatentAttention,
    norms: list[Tensor],
    *,
    inner: bool,
    bias: bool,
) -> list[Tensor]:
    h, heads = arch.hidden, attention.heads
    queries = heads * (attention.nope_dim + attention.rope_dim)
    tensors = [*norms, *_projection(arch, heads * attention.v_dim, bias)]
    if attention.q_rank is None:
        tensors.append(Tensor("linear_q_proj.weight", (queries, h), "column"))
    else:
        rank = attention.q_rank
        tensors.append(Tensor("linear_q_down_proj.weight", (rank, h), "replicated"))
        tensors += _norm(arch, "q_layernorm", rank) if inner else []
        tensors.append(Tensor("linear_q_up_proj.weight", (queries, rank), "column"))
    rank = attention.kv_rank
    down = (rank + attention.rope_dim, h)
    up = (heads * (attention.nope_dim + attention.v_dim), rank)
    tensors.append(Tensor("linear_kv_down_proj.weight", down, "replicated"))
    tensors += _norm(arch, "kv_layernorm", rank) if inner else []
    tensors.append(Tensor("linear_kv_up_proj.weight", up, "column"))
    return tensors


def _network(h: int, ffn: int, gated: bool, bias: bool, prefix: str) -> list[Tensor]:
    wide = ffn * (2 if gated else 1)
    first = [
        Tensor(f"{prefix}.linear_fc1.weight", (wide, h), "column"),
        Tensor(f"{prefix}.linear_fc1.bias", (wide,), "column"),
    ]
    second = [
        Tensor(f"{prefix}.linear_fc2.weight", (h, ffn), "row"),
        Tensor(f"{prefix}.linear_fc2.bias", (h,), "replicated"),
    ]
    return [*first[: 1 + bias], *second[: 1 + bias]]


def _experts(h: int, moe: MoE) -> list[Tensor]:
    experts, wide = moe.experts, moe.ffn * (2 if moe.gated else 1)
    tensors = [Tensor("router.weight", (experts, h), "replicated")]
    if moe.router_bias:
        tensors.append(Tensor("router.bias", (experts,), "replicated"))
    tensors.append(Tensor("experts.linear_fc1.weight", (experts, wide, h), "expert"))
    if moe.bias:
        tensors.append(Tensor("experts.linear_fc1.bias", (experts, wide), "expert"))
    shape = (experts, h, moe.ffn)
    tensors.append(Tensor("experts.linear_fc2.weight", shape, "expert"))
    if moe.bias:
        tensors.append(Tensor("experts.linear_fc2.bias", (experts, h), "expert-bias"))
    if moe.shared_ffn:
        if moe.shared_gate:
            tensors.append(Tensor("shared_experts.gate_weight", (1, h), "replicated"))
        tensors += _network(
            h, moe.shared_ffn, moe.gated, moe.bias, prefix="shared_experts"
        )
    return tensors


def layer_tensors(
    architecture: Architecture,
    layer: Layer,
    *,
    latent_norm: bool = True,
    latent_bias: bool = False,
) -> tuple[Tensor, ...]:
    """Return the parameters of one decoder layer, in Megatron-Core's order.

    The order decides how gradient buffers are padded. Norms are inside the next
    projection (TransformerEngine's fused layers), except before latent attention and
    before experts.

    Parameters
    ----------
    architecture
        The model the layer belongs to: its width and kind of norm.
    layer
        One of its layers.
    latent_norm
        Whether latent attention norms its compressed queries and keys.
    latent_bias
        Whether its output projection has a bias, which no published model's has.
    """
    h = architecture.hidden
    norms = [_norm(architecture, f"norm{index}", h) for index in range(layer.norms)]
    tensors: list[Tensor] = []
    if isinstance(layer.attention, Attention):
        tensors += _attention(architecture, layer.attention, norms[0])
    else:
        latent, inner = layer.attention, latent_norm
        tensors += _latent(
            architecture, latent, norms[0], inner=inner, bias=latent_bias
        )
    for norm in norms[1:]:
        tensors += norm
    network = layer.feed_forward
    if isinstance(network, DenseFFN):
        tensors += _network(h, network.ffn, network.gated, network.bias, "mlp")
    else:
        tensors += _experts(h, network)
    return tuple(tensors)


def embedding_tensors(architecture: Architecture) -> tuple[Tensor, ...]:
    """Return the parameters in front of the first decoder layer."""
    arch = architecture
    tensors = [Tensor("word_embeddings.weight", (arch.vocab, arch.hidden), "vocab")]
    if arch.position == "learned":
        shape = (arch.max_positions, arch.hidden)
        tensors.append(Tensor("position_embeddings.weight", shape, "replicated"))
    if arch.embedding_norm:
        tensors += _norm(arch, "embedding_norm", arch.hidden)
    return tuple(tensors)


def head_tensors(architecture: Architecture) -> tuple[Tensor, ...]:
    """Return the final norm and the output projection, the latter even if tied."""
    arch = architecture
    tensors = _norm(arch, "final_layernorm", arch.hidden) if arch.final_norm else []
    tensors.append(Tensor("output_layer.weight", (arch.vocab, arch.hidden), "vocab"))
    if arch.head_bias:
        tensors.append(Tensor("output_layer.bias", (arch.vocab,), "vocab"))
    return tuple(tensors)


def mtp_tensors(
    architecture: Architecture, *, latent_norm: bool = True, latent_bias: bool = False
) -> tuple[Tensor, ...]:
    """Return the parameters of one multi-token-prediction layer.

    Two norms, a projection of token and state onto the hidden width, a decoder
    layer of the last layer's kind and a final norm; embedding and output projection
    are the model's own. The parameters are those of ``layer_tensors``.
    """
    arch = architecture
    h = arch.hidden
    tensors = _norm(arch, "enorm", h) + _norm(arch, "hnorm", h)
    tensors.append(Tensor("eh_proj.weight", (h, 2 * h), "column"))
    tensors += layer_tensors(
        arch, arch.layers[-1], latent_norm=latent_norm, latent_bias=latent_bias
    )
    tensors += _norm(arch, "final_layernorm", h)
    return tuple(tensors)


def parameter_count(architecture: Architecture, *, mtp: bool = False) -> int:
    """Return the number of parameters of the whole model.

    Parameters
    ----------
    architecture
        The model; tied embeddings count once, the vocabulary is not padded.
    mtp
        Whether to add the multi-token-prediction layers, which published totals
        leave out.
    """
    arch = architecture
    by_kind = [_count(layer_tensors(arch, kind)) for kind in arch.kinds]
    whole = sum(by_kind[k] for k in arch.kind_of_layer)
    whole += _count(embedding_tensors(arch)) + _count(head_tensors(arch))
    if arch.tied:
        whole -= arch.vocab * arch.hidden
    if mtp:
        whole += arch.mtp_layers * _count(mtp_tensors(arch))
    return whole


def _count(tensors: Iterable[Tensor]) -> int:
    return sum(t.count for t in tensors)
