"""What libraries hold on a rank beside the ledger's tensors, each a named item.

Sources: the code of TransformerEngine, PyTorch, FlashAttention and Megatron-LM where
it gives a size; otherwise published peaks, see ``models/profiles/memory.json``.

Letters: n tokens of a sequence shard, s sequence length, b micro-batch, a heads,
d head dim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ..architecture import Attention, LatentAttention
from ..expr import value
from .entries import Entry, Recompute
from .library_constants import constants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..architecture import Layer
    from ..stages import Stage
    from .entries import Entries
    from .model import MemoryModel

Backend = Literal["fused", "flash", "unfused"]
FUSED: Final = "fused"
FLASH: Final = "flash"
UNFUSED: Final = "unfused"


@dataclass(frozen=True, kw_only=True)
class Software:
    """What runs a model, as far as it holds memory of its own.

    Attributes
    ----------
    generation
        The device's instruction set, such as ``sm90``: libraries choose by it.
    attention
        ``fused`` is cuDNN's or FlashAttention 3, ``flash`` FlashAttention 2,
        ``unfused`` keeps the scores.
    deterministic
        Whether only deterministic kernels run.
    masks
        Whether the data loader makes an attention mask for each micro-batch.
    grouped
        Whether experts run as grouped matrix products.
    deferred
        Micro-batches whose gradient of the logits waits for a bubble.
    group
        Micro-batches in a group of the interleaved order, None for pp.
    scripted
        Whether Megatron's fused loss is scripted by an older PyTorch rather than
        compiled: two more 32-bit copies of the logits live at its peak.
    """

    generation: str = "sm90"
    attention: Backend = "fused"
    deterministic: bool = False
    masks: bool = False
    grouped: bool = True
    deferred: int = 0
    group: int | None = None
    scripted: bool = False


class Held(NamedTuple):
    """A named number of bytes, and where the number comes from."""

    name: str
    bytes: int
    source: str


def backend(generation: str, *, deterministic: bool) -> Backend:
    """Return the attention that TransformerEngine chooses if left to itself.

    cuDNN's attention is preferred from compute capability 9.0 on; on 10.0 it has no
    deterministic backward, and before 9.0 FlashAttention 2 is preferred (its
    ``get_attention_backend``).
    """
    if generation == "sm90" or (generation == "sm100" and not deterministic):
        return FUSED
    return FLASH


def workspaces(model: MemoryModel, stage: Stage, software: Software) -> Iterator[Held]:
    """Yield the workspaces of a rank's matrix products.

    PyTorch keeps one for each handle and stream: two, for forward and backward run on
    threads of their own, where anything but TransformerEngine multiplies matrices.
    """
    sizes = constants()
    name = "deterministic" if software.deterministic else software.generation
    own = software.attention == UNFUSED or any(chunk.head for chunk in stage)
    routed = any(
        n and kind.is_moe
        for chunk in stage
        for n, kind in zip(chunk.layers, model.architecture.kinds, strict=True)
    )
    kernels = model.context.kernels
    if own or routed or not kernels.is_te:
        each = sizes.cublas(name)
        yield Held("cuBLAS workspaces", 2 * each.bytes, each.source)
    if kernels.is_te:
        each = sizes.engine(software.generation)
        yield Held("TransformerEngine's workspace", each.bytes, each.source)
        if routed and software.grouped:
            streams = 4 * each.bytes
            yield Held("workspaces of grouped products", streams, each.source)


def batches(model: MemoryModel, stage: Stage, software: Software) -> Iterator[Held]:
    """Yield the masks of the batches that each chunk's data loader holds.

    Two for each chunk of a rank with an end: the one in use and the next.
    """
    ends = any(chunk.embedding or chunk.head for chunk in stage)
    if software.masks and ends:
        training, dims = model.context.training, model.dims
        tokens = value(dims.mbs, {}) * training.seq_len
        mask = tokens * training.seq_len // value(dims.cp, {})
        source = "Megatron-LM, get_ltor_masks_and_position_ids: one byte for each pair"
        yield Held("attention masks of two batches", 2 * len(stage) * mask, source)


def layer_extras(
    model: MemoryModel, layer: Layer, recompute: Recompute, software: Software
) -> Entries:
    """Yield what libraries keep of one micro-batch in one layer."""
    if software.attention != FLASH or recompute.full or "core_attn" in recompute:
        return
    attention, units = layer.attention, model.context.units
    if isinstance(attention, Attention):
        width = attention.heads * attention.head_dim
    else:
        assert isinstance(attention, LatentAttention)
        width = attention.heads * attention.v_dim
    several = value(model.dims.mbs, {}) > 1
    if several and model.context.kernels.is_te:
        # FlashAttention 2 wants sequences first; its output is turned round again.
        name = "attention output before it is turned"
        shape, dtype = f"[b, s, {width}/tp]", model.context.dtype
        yield Entry(name, dtype, shape, width, units.tokens_tp)


def moment_extras(
    model: MemoryModel, stage: Stage, transient: str | None, software: Software
) -> Iterator[Held]:
    """Yield what is alive for a moment, whatever the micro-batches keep.

    Under sequence parallelism the gradient of the projection's input is scattered into
    a tensor of its own. Fused latent attention holds one tensor of the queries' size.
    """
    units, hidden = model.context.units, model.architecture.hidden
    if transient == "loss moment" and value(model.dims.sp, {}):
        scattered = value(units.shard.times(2 * hidden), {})
        source = "Megatron-LM, reduce-scatter of the output layer; SimuMax B200"
        yield Held("scattered gradient of the projection input", scattered, source)
    widths = [
        kind.attention.heads * (kind.attention.nope_dim + kind.attention.rope_dim)
        for index, kind in enumerate(model.architecture.kinds)
        if isinstance(kind.attention, LatentAttention)
        and any(chunk.layers[index] for chunk in stage)
    ]
    if widths and software.attention != UNFUSED:
        queries = value(units.tokens_tp.times(2 * max(widths)), {})
        source = "SimuMax B200, DeepSeek-V2 on three kinds of rank, within 20 MiB"
        yield Held("latent attention's copy of queries", queries, source)


def scripted_loss(model: MemoryModel, software: Software) -> Iterator[Held]:
    """Yield the copies of the logits that a loss keeps if it is not compiled."""
    native = model.context.training.cross_entropy == "native-fused"
    if software.scripted and native:
        logits = value(model.context.units.logits(model.state.rows).times(4), {})
        source = "Megatron CI, three goldens of older software: about 4 X more"
        yield Held("copies of the logits in a scripted loss", 2 * logits, source)


def deferred_logits(model: MemoryModel, software: Software) -> Iterator[Held]:
    """Yield gradients of the logits, and the projection's inputs, that wait."""
    if software.deferred:
        units, rows = model.context.units, model.state.rows
        logits = value(units.logits(rows).times(2), {})
        inputs = value(units.tokens.times(2 * model.context.hidden), {})
        source = "Megatron-LM --defer-embedding-wgrad-compute"
        name = "deferred gradients of the logits"
        yield Held(name, software.deferred * (logits + inputs), source)
