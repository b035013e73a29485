"""What a rank of nanotron allocates.

Letters: L layers on a rank, n tokens of a micro-batch, h width, f width of the gated
network, V vocabulary, N parameters of a rank, X = 2 n V / tp bytes of 16-bit logits.

Source: nanotron v0.5 (models/llama.py, parallel/pipeline_parallel, optim/zero.py,
optim/gradient_accumulator.py). A layer keeps, in 16-bit tensors of n h numbers, input
and output of two norms, the packed projection (3), rotated queries, keys and values,
and attention's output; of n f numbers the two halves, the activated one and their
product. Under sequence parallelism gathers are run again, so that all is over tp.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from ..architecture import Attention, DenseFFN
from ..errors import InputError
from ..parameters import embedding_tensors, head_tensors, layer_tensors
from .library import Held
from .library_constants import constants
from .phases import RankPeak

if TYPE_CHECKING:
    from ..architecture import Architecture, Layer

#: Tensors of n h numbers that a layer's norms and its attention keep, and of n f
#: numbers that its network does.
NORMS, HEADS, NETWORK = 4, 7, 4
#: The loss: 16-bit logits, their 32-bit copy, and with more than one micro-batch the
#: 32-bit logits of the one before, in units of X.
LOSS, BEFORE = 3, 2
_SOURCE = "nanotron v0.5"


class NanotronRun(NamedTuple):
    """One configuration; ``sharded`` is ZeRO-1, ``sp`` sequence parallelism."""

    architecture: Architecture
    seq_len: int
    tp: int
    pp: int
    dp: int
    mbs: int
    m: int
    sharded: bool
    sp: bool = True


def nanotron_stages(arch: Architecture, pp: int) -> list[tuple[int, bool, bool]]:
    """Return for each rank its layers, and whether embedding and head are there.

    Blocks are dealt in order by their cost (products of a layer and of the head); a
    rank is full once its blocks reach its share, so that the one that crosses the
    border belongs to it.
    """
    costs = [0, *(_cost(arch, layer) for layer in arch.layers), 0]
    costs.append(arch.vocab * arch.hidden)
    ranks, rank, total = [], 0, sum(costs)
    for done in accumulate(costs):
        ranks.append(rank)
        if done * pp >= total * (rank + 1):
            rank = min(rank + 1, pp - 1)
    inner = ranks[1:-2]
    return [(inner.count(r), ranks[0] == r, ranks[-1] == r) for r in range(pp)]


def _cost(arch: Architecture, layer: Layer) -> int:
    attention, network = _blocks(layer)
    wide = 4 * attention.heads * attention.head_dim
    return arch.hidden * (wide + 3 * network.ffn)


def _blocks(layer: Layer) -> tuple[Attention, DenseFFN]:
    attention, network = layer.attention, layer.feed_forward
    if isinstance(attention, Attention) and isinstance(network, DenseFFN):
        return attention, network
    raise InputError("nanotron's layers are dense, with multi-head attention")


def nanotron_peaks(run: NanotronRun) -> tuple[RankPeak, ...]:
    """Return the peak of every pipeline rank.

    Raises
    ------
    InputError
        If the model is no dense transformer.
    """
    return tuple(
        _peak(run, rank, *stage)
        for rank, stage in enumerate(nanotron_stages(run.architecture, run.pp))
    )


def _peak(
    run: NanotronRun, rank: int, layers: int, embedding: bool, head: bool
) -> RankPeak:
    arch, tokens = run.architecture, run.mbs * run.seq_len
    attention, network = _blocks(arch.layers[0])
    numbers = _parameters(arch, layers, embedding, head) // run.tp
    wide = attention.heads * attention.head_dim
    inner = (HEADS * wide + NETWORK * network.ffn) // run.tp
    norms = NORMS * arch.hidden // (run.tp if run.sp else 1)
    kept = 2 * tokens * (inner + norms)
    logits = 2 * tokens * arch.vocab // run.tp
    shards = run.dp if run.sharded else 1
    other = constants().size("nanotron_other_bytes")
    items = [
        Held("weights and 32-bit gradients", 6 * numbers, _SOURCE),
        Held("optimizer states", -(-12 * numbers // shards), _SOURCE),
        Held("layers' activations", layers * min(run.pp - rank, run.m) * kept, _SOURCE),
        Held("other", other.bytes, other.source),
    ]
    if run.dp > 1:
        items.append(Held("16-bit gradients", 2 * numbers, _SOURCE))
    if head:
        count = LOSS + (BEFORE if run.m > 1 else 0)
        items.append(Held("logits", count * logits, _SOURCE))
    total = sum(item.bytes for item in items)
    return RankPeak(rank=rank, bytes=total, items=tuple(items), moment="loss")


def _parameters(arch: Architecture, layers: int, embedding: bool, head: bool) -> int:
    found = layers * sum(t.count for t in layer_tensors(arch, arch.layers[0]))
    words = sum(t.count for t in embedding_tensors(arch))
    if embedding:
        found += words
    if head and not (arch.tied and embedding):
        found += sum(t.count for t in head_tensors(arch))
    return found
