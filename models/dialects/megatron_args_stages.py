"""Which layers lie on which pipeline rank, as Megatron's arguments say."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..errors import InputError
from ..stages import Chunk
from .pipeline_layout import PipelineLayout

if TYPE_CHECKING:
    from ..architecture import Architecture
    from ..stages import Stage
    from .megatron_args import Arguments


_MOST = 4096


def stages_of(args: Arguments, arch: Architecture) -> tuple[Stage, ...]:
    """Return for each pipeline rank its chunks.

    A written layout (``--pipeline-model-parallel-layout``) comes first: it decides
    the number of chunks of a rank, whatever else is said of it.

    Raises
    ------
    InputError
        If the layers do not fill the chunks.
    """
    pp = args.whole("pipeline-model-parallel-size", 1, least=1)
    written = args.text("pipeline-model-parallel-layout")
    if pp > _MOST:
        raise InputError(f"a pipeline has at most {_MOST} ranks, got {pp}")
    if written:
        letters = PipelineLayout.parse(written).stages
        vpp = len(letters) // pp
        sizes = [stage.count("t") for stage in letters]
        mtp = ["m" in stage for stage in letters]
    else:
        vpp = chunks_of(args, arch.num_layers, pp)
        sizes = _sizes(args, arch.num_layers, pp, vpp)
        mtp = [False] * (len(sizes) - 1) + [arch.mtp_layers > 0]
    if len(sizes) != pp * vpp or sum(sizes) != arch.num_layers or min(sizes) < 0:
        raise InputError(
            f"the {arch.num_layers} layers fill {pp} pipeline ranks of {vpp} chunks, "
            f"got {sum(sizes)} layers in {len(sizes)} chunks"
        )
    chunks = _chunks(arch, sizes, mtp)
    return tuple(tuple(chunks[j * pp + r] for j in range(vpp)) for r in range(pp))


def chunks_of(args: Arguments, layers: int, pp: int) -> int:
    """Return the chunks of a rank where no layout is written."""
    if args.has("num-virtual-stages-per-pipeline-rank"):
        return args.whole("num-virtual-stages-per-pipeline-rank", least=1)
    if args.has("num-layers-per-virtual-pipeline-stage") and pp > 1:
        each = args.whole("num-layers-per-virtual-pipeline-stage")
        return max(1, layers // pp // max(1, each))
    return 1


def _sizes(args: Arguments, layers: int, pp: int, vpp: int) -> list[int]:
    """Return the decoder layers of every chunk along the model."""
    first = args.has("account-for-embedding-in-pipeline-split")
    last = args.has("account-for-loss-in-pipeline-split")
    if first or last:
        each = (layers + first + last) // (pp * vpp)
        sizes = [each] * (pp * vpp)
        sizes[0] -= first
        sizes[-1] -= last
        return sizes
    ends = (
        args.whole("decoder-first-pipeline-num-layers", 0),
        args.whole("decoder-last-pipeline-num-layers", 0),
    )
    middle = pp - sum(bool(end) for end in ends)
    ranks = [(layers - sum(ends)) // max(1, middle)] * pp
    ranks[0], ranks[-1] = ends[0] or ranks[0], ends[1] or ranks[-1]
    return [size // vpp for size in ranks] * vpp


def _chunks(arch: Architecture, sizes: list[int], mtp: list[bool]) -> list[Chunk]:
    chunks, start = [], 0
    for index, count in enumerate(sizes):
        tally = Counter(arch.kind_of_layer[start : start + count])
        chunks.append(
            Chunk(
                layers=tuple(tally[k] for k in range(len(arch.kinds))),
                mtp=arch.mtp_layers if mtp[index] else 0,
                embedding=index == 0,
                head=index == len(sizes) - 1,
            )
        )
        start += count
    return chunks
