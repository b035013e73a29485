"""What a rank of torchtitan reserves: FSDP2, tensor and pipeline parallelism.

Letters: n tokens of a rank's micro-batch, T = n / tp, h width, f width of the gated
network, V vocabulary, N parameters of a rank before sharding, X = 2 n V / tp bytes of
16-bit logits.

Source: torchtitan, torchtitan/models/llama and torchtitan/parallelisms; FSDP2
(torch/distributed/_composable/fsdp). Weights, gradients and Adam's moments are sharded
in 32 bits. Root weights (embedding, head) stay unsharded in 16 bits; with a pipeline so
do all weights, and their gradients in 32 bits, until the last micro-batch. Allocated
memory is reserved in expandable segments, which leave no holes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from ..architecture import Attention, DenseFFN
from ..errors import InputError
from ..parameters import embedding_tensors, head_tensors, layer_tensors
from .library import Held
from .phases import RankPeak

if TYPE_CHECKING:
    from ..architecture import Architecture

Checkpoint = Literal["none", "op", "full"]
#: 16-bit logits, their 32-bit copy, log-softmax, its gradient in 32 and 16 bits, in
#: units of X; in parallel over tp also two more 32-bit copies.
LOSS, PARALLEL_LOSS = 7, 11
_SOURCE = "torchtitan"


class TorchtitanRun(NamedTuple):
    """One configuration of torchtitan.

    ``dp`` counts the ranks of data and context parallelism that FSDP shards over;
    ``checkpoint`` is none, every second product (op), or full; ``flight`` the
    micro-batches that the first rank holds.
    """

    architecture: Architecture
    seq_len: int
    tp: int
    pp: int
    cp: int
    dp: int
    mbs: int
    flight: int
    checkpoint: Checkpoint
    compiled: bool


def torchtitan_peaks(run: TorchtitanRun) -> tuple[RankPeak, ...]:
    """Return the peak of every pipeline rank.

    Raises
    ------
    InputError
        If the model is no dense transformer.
    """
    layers = -(-run.architecture.num_layers // run.pp)
    return tuple(_peak(run, rank, layers) for rank in range(run.pp))


def _peak(run: TorchtitanRun, rank: int, layers: int) -> RankPeak:
    arch, first, last = run.architecture, rank == 0, rank == run.pp - 1
    layer = sum(t.count for t in layer_tensors(arch, arch.layers[0])) // run.tp
    words = sum(t.count for t in embedding_tensors(arch)) // run.tp if first else 0
    head = sum(t.count for t in head_tensors(arch)) // run.tp if last else 0
    numbers = layers * layer + words + head
    kept, working = _layer(run)
    flight = min(run.flight, run.pp - rank)
    items = [
        Held("sharded weights, gradients, moments", 16 * numbers // run.dp, _SOURCE),
        Held("layers' activations", layers * flight * kept, _SOURCE),
    ]
    if run.pp > 1:
        items.append(Held("unsharded weights", 2 * numbers, _SOURCE))
        items.append(Held("unsharded gradients", 4 * numbers, _SOURCE))
    else:
        items.append(Held("unsharded root weights", 2 * (words + head), _SOURCE))
    tokens = run.mbs * run.seq_len // run.cp
    count = LOSS if run.tp == 1 else PARALLEL_LOSS
    logits = count * (2 * tokens * arch.vocab // run.tp) if last else 0
    # Two layers are gathered while one runs backward, with its gradients in 32 bits.
    gathered = 0 if run.pp > 1 else (2 * 2 + 4) * layer
    if logits >= working + gathered:
        items.append(Held("logits", logits, _SOURCE))
    else:
        items.append(Held("one layer run again, and its gradients", working, _SOURCE))
        items.append(Held("gathered layers", gathered, _SOURCE))
    total = sum(item.bytes for item in items)
    return RankPeak(rank=rank, bytes=total, items=tuple(items), moment="loss")


def _layer(run: TorchtitanRun) -> tuple[int, int]:
    """Return what a layer keeps, and what running it backward needs, in bytes."""
    layer = run.architecture.layers[0]
    attention, network = layer.attention, layer.feed_forward
    if not (isinstance(attention, Attention) and isinstance(network, DenseFFN)):
        raise InputError("torchtitan's layers are dense here, with grouped attention")
    tokens = 2 * run.mbs * run.seq_len // run.cp
    wide = attention.heads * attention.head_dim // run.tp
    keys = attention.kv_heads * attention.head_dim // run.tp
    network_width, stream = network.ffn // run.tp, run.architecture.hidden // run.tp
    gathered = run.architecture.hidden
    inner = 2 * wide + 2 * keys + 4 * network_width
    whole = tokens * (4 * stream + inner + (2 * gathered if run.tp > 1 else 0))
    saved = tokens * stream
    if run.checkpoint == "none":
        saved = whole
    elif run.checkpoint == "op":
        # Of seven products every second is kept, and attention's output.
        saved += tokens * (2 * wide + keys + network_width + stream)
        if not run.compiled:
            saved += tokens * stream
    gradients = tokens * (stream + 2 * network_width + (gathered if run.tp > 1 else 0))
    return saved, (whole if run.checkpoint != "none" else 0) + gradients
