"""Gradient and parameter buffers of Megatron's data parallelism, with padding.

Source: distributed/param_and_grad_buffer.py and distributed_data_parallel.py of
Megatron-Core 0.16.1. Parameters are laid into one buffer from the last to the first.
With the distributed optimizer a parameter starts at a multiple of 64 numbers and a
bucket ends at a multiple of the least common multiple of 128 and its ranks. Where a
bucket ends depends on all parameters before it, so that this is a scan over one
layout and no expression of the axes; padding is left out of ``rank_peak``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm, prod
from typing import TYPE_CHECKING

from ..parameters import Tensor, embedding_tensors, head_tensors, layer_tensors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..architecture import Architecture
    from ..stages import Chunk

#: Numbers between possible starts of a parameter (128 bytes of 2-byte numbers).
ALIGNMENT = 64
#: Numbers that a bucket's size is a multiple of, besides its ranks.
BUCKET_MULTIPLE = 128
#: Megatron's default: at least 40,000,000 numbers, and 1,000,000 for each rank.
BUCKET_LEAST, BUCKET_PER_RANK = 40_000_000, 1_000_000


@dataclass(frozen=True)
class Buffer:
    """One buffer: numbers of its parameters, with padding, and its buckets."""

    numbers: int
    padded: int
    buckets: int


@dataclass(frozen=True)
class Parameter:
    """One parameter tensor on a rank, in numbers.

    ``alone`` parameters (tied embeddings) get a bucket of their own.
    """

    name: str
    numbers: int
    expert: bool
    alone: bool = False


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def fill(
    parameters: Sequence[Parameter], ranks: int, bucket: int | None, *, sharded: bool
) -> Buffer:
    """Lay parameters into a buffer.

    Parameters
    ----------
    parameters
        In the model's order; the last is laid first.
    ranks
        Ranks that reduce this buffer's gradients together.
    bucket
        Numbers from which a bucket is closed, None for a single bucket.
    sharded
        Whether the distributed optimizer shards the buffer.
    """
    align = ALIGNMENT if sharded else 1
    multiple = lcm(ranks, BUCKET_MULTIPLE) if sharded else 1
    end = start = buckets = numbers = 0
    for parameter in reversed(parameters):
        end = _up(end, align)
        alone = parameter.alone and sharded
        if alone and end > start:
            numbers += end - start
            start = end = _up(end, multiple)
            buckets += 1
        end += parameter.numbers
        if alone or (bucket is not None and end - start >= bucket):
            numbers += end - start
            start = end = _up(end, multiple)
            buckets += 1
    if end > start:
        numbers += end - start
        end = _up(end, multiple)
        buckets += 1
    return Buffer(numbers, end, buckets)


def _local(
    tensor: Tensor, point: Mapping[str, int], rows: int, *, tied: bool
) -> Iterable[Parameter]:
    """Split a tensor into the parameters of one rank: experts are one each."""
    tp, ep, etp = point["tp"], point["ep"], point["etp"]
    match tensor.shard:
        case "expert" | "expert-bias":
            parts = etp if tensor.shard == "expert" else 1
            numbers = prod(tensor.shape[1:]) // parts
            for index in range(tensor.shape[0] // ep):
                yield Parameter(f"{tensor.name}{index}", numbers, expert=ep > 1)
        case "vocab":
            numbers = rows * prod(tensor.shape[1:])
            yield Parameter(tensor.name, numbers, expert=False, alone=tied)
        case "column" | "row":
            yield Parameter(tensor.name, tensor.count // tp, expert=False)
        case "replicated":
            yield Parameter(tensor.name, tensor.count, expert=False)


def chunk_parameters(
    architecture: Architecture,
    kinds: Sequence[int],
    chunk: Chunk,
    point: Mapping[str, int],
    rows: int,
) -> list[Parameter]:
    """List a chunk's parameters on one rank, in the model's order.

    Parameters
    ----------
    architecture
        The model.
    kinds
        The kind of each of the chunk's layers, in order.
    chunk
        Whether embedding and head are here.
    point
        Values of tp, ep and etp.
    rows
        A rank's rows of the vocabulary.
    """
    tensors: list[Tensor] = []
    if chunk.embedding:
        tensors += embedding_tensors(architecture)
    for kind in kinds:
        tensors += layer_tensors(architecture, architecture.kinds[kind])
    if chunk.head:
        head = head_tensors(architecture)
        shared = architecture.tied and chunk.embedding
        tensors += [t for t in head if not (shared and t.name == "output_layer.weight")]
    # Only a tensor that two ranks hold has its gradients summed apart.
    tied = architecture.tied and not (chunk.embedding and chunk.head)
    return [p for t in tensors for p in _local(t, point, rows, tied=tied)]


def data_parallel_buffers(
    parameters: Sequence[Parameter],
    *,
    dp: int,
    cp: int,
    edp: int,
    sharded: bool,
    overlapped: bool,
    first: bool = True,
) -> tuple[Buffer, ...]:
    """Return the buffer of dense parameters and, if there are any, of experts'.

    Parameters
    ----------
    parameters
        One chunk's parameters on one rank.
    dp, cp, edp
        Data-parallel and context-parallel ranks, and those of one expert.
    sharded
        Whether the optimizer is distributed (sharding stage 1).
    overlapped
        Whether the gradients' reduction overlaps the backward pass; only then, and
        only on the first pipeline rank's first chunk, there are several buckets.
    first
        Whether this is that chunk.
    """
    bucket = max(BUCKET_LEAST, BUCKET_PER_RANK * dp) if overlapped and first else None
    dense = [p for p in parameters if not p.expert]
    experts = [p for p in parameters if p.expert]
    groups = ((dense, dp * cp), (experts, edp))
    return tuple(
        fill(group, ranks, bucket, sharded=sharded) for group, ranks in groups if group
    )
