"""Whole ranks: what libraries hold, phases, and the device's verdict."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.memory_order import held as walked

from shardproof.models.dialects.megatron_args import Arguments
from shardproof.models.dialects.megatron_args_run import read_run
from shardproof.models.errors import InputError
from shardproof.models.expr import value
from shardproof.models.memory.library import backend
from shardproof.models.memory.library_device import (
    Band,
    band,
    communicators,
    device_bytes,
    generation,
    largest_temporary,
    reserved,
    verdict,
)
from shardproof.models.memory.phases import peaks, rank_peak, state, worst
from shardproof.models.memory.phases_step import phases

if TYPE_CHECKING:
    from shardproof.models.memory.phases import Run

MIB = 2**20
LLAMA = (
    "--num-layers 12 --hidden-size 1024 --ffn-hidden-size 4096 "
    "--num-attention-heads 16 --num-query-groups 4 --seq-length 2048 "
    "--micro-batch-size 2 --vocab-size 32000 "
    "--swiglu --normalization RMSNorm --position-embedding-type rope "
    "--disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0.0 "
    "--attention-dropout 0.0 --use-distributed-optimizer "
    "--no-create-attention-mask-in-dataloader"
)


def run_of(more: str = "", world: int = 8, generation: str = "sm90") -> Run:
    """Read a small Llama's run."""
    return read_run(Arguments.parse(shlex.split(f"{LLAMA} {more}")), world, generation)


def item(run: Run, rank: int, name: str) -> int:
    """Return the bytes of the items of one name at a rank's peak."""
    return sum(i.bytes for i in rank_peak(run, rank).items if i.name == name)


@pytest.mark.parametrize(
    ("generation", "more", "cublas", "engine"),
    [
        # torch: 32 MiB on 9.0 and in deterministic runs, 8.125 MiB elsewhere, for two
        # threads; TransformerEngine: 32 MiB from 9.0 on, 4 MiB before.
        ("sm80", "", 2 * 8.125, 4),
        ("sm80", "--deterministic-mode", 2 * 32, 4),
        ("sm90", "", 2 * 32, 32),
        ("sm100", "", 2 * 8.125, 32),
    ],
)
def test_workspaces_are_those_of_the_device(
    generation: str, more: str, cublas: float, engine: float
) -> None:
    """Sizes are written in the sources of PyTorch and TransformerEngine."""
    run = run_of(more, generation=generation)
    assert item(run, 0, "cuBLAS workspaces") == cublas * MIB
    assert item(run, 0, "TransformerEngine's workspace") == engine * MIB


def test_a_rank_without_head_multiplies_with_the_engine_alone() -> None:
    """No workspace of PyTorch on a middle rank."""
    run = run_of("--pipeline-model-parallel-size 4")
    assert item(run, 1, "cuBLAS workspaces") == 0
    assert item(run, 3, "cuBLAS workspaces") > 0


def test_flash_attention_turns_its_output_round() -> None:
    """n a d numbers of 2 bytes for each layer: 12 x 2 x 2048 x 1024 x 2."""
    name = "attention outputs before they are turned"
    flash = run_of("--attention-backend flash")
    assert item(flash, 0, name) == 12 * 2 * 2048 * 1024 * 2
    assert item(run_of("--attention-backend fused"), 0, name) == 0
    one = run_of("--attention-backend flash --micro-batch-size 1")
    assert item(one, 0, name) == 0
    full = run_of("--attention-backend flash --recompute-granularity full")
    assert item(full, 0, name) == 0


def test_the_loader_holds_two_masks_a_chunk() -> None:
    """A byte for each pair of positions, of the batch in use and of the next."""
    plain = LLAMA.replace("--no-create-attention-mask-in-dataloader", "")
    args = Arguments.parse(
        shlex.split(
            f"{plain} --pipeline-model-parallel-size 2 --global-batch-size 16 "
            "--num-virtual-stages-per-pipeline-rank 3"
        )
    )
    run, name = read_run(args, 8, "sm90"), "attention masks of two batches"
    assert item(run, 0, name) == 2 * 3 * 2 * 2048 * 2048
    assert item(run_of(), 0, name) == 0


def test_experts_add_uneven_rows_only_where_ranks_share_them() -> None:
    """With all experts on a rank there is nothing to be uneven."""
    moe = "--num-experts 8 --moe-router-topk 2 --moe-grouped-gemm"
    name = "rows beyond balanced routing"
    shared = run_of(f"{moe} --expert-model-parallel-size 4")
    assert item(shared, 0, name) > 0
    assert item(run_of(moe), 0, name) == 0
    padded = f"{moe} --expert-model-parallel-size 4 --moe-expert-capacity-factor 1"
    assert item(run_of(padded), 0, name) == 0


def test_copies_of_the_optimizer_s_shards_divide_its_ranks() -> None:
    """Two instances: each shard spans half the ranks, so that states double."""
    name = "optimizer states of dense layers"
    one, two = run_of(), run_of("--num-distributed-optimizer-instances 2")
    assert item(two, 0, name) == pytest.approx(2 * item(one, 0, name), abs=8)


@given(
    pp=st.sampled_from([1, 2, 4]),
    vpp=st.sampled_from([1, 3]),
    groups=st.integers(1, 4),
    rank=st.integers(0, 3),
)
def test_the_peak_is_the_fullest_slot_of_the_walked_order(
    pp: int, vpp: int, groups: int, rank: int
) -> None:
    """A walk over Megatron's order, slot by slot, finds no fuller moment.

    On a middle rank a layer's backward is the only temporary, so that the peak is the
    fullest load times what its layers keep, and that temporary.
    """
    if pp == 1 or rank in (0, pp - 1) or rank >= pp:
        return
    m = groups * pp
    virtual = f"--num-virtual-stages-per-pipeline-rank {vpp}" if vpp > 1 else ""
    run = run_of(
        f"--pipeline-model-parallel-size {pp} {virtual} --attention-backend fused "
        f"--global-batch-size {2 * m}",
        world=pp,
    )
    kept = value(run.model.saved("layer 0"), {})
    moment = value(run.model.saved("layer 0 moment"), {})
    once = value(run.model.saved("model"), {})
    layers = 12 // pp // vpp
    loads = walked(pp, vpp, rank, m)
    expected = max(sum(load) for load in loads) * layers * kept + moment + once
    assert item(run, rank, "activations") == expected


@given(st.sampled_from([1, 2, 4]), st.sampled_from([1, 3]), st.integers(1, 3))
def test_phases_follow_each_other(pp: int, vpp: int, groups: int) -> None:
    """Each phase holds what came before it; the second step is the peak."""
    virtual = f"--num-virtual-stages-per-pipeline-rank {vpp}" if pp * vpp > pp else ""
    run = run_of(
        f"--pipeline-model-parallel-size {pp} {virtual if pp > 1 else ''} "
        f"--global-batch-size {16 * groups * pp}"
    )
    for rank in range(pp):
        found = phases(run, rank)
        assert found["initialisation"] <= found["first forward"] <= found["warm-up"]
        assert found["warm-up"] <= found["steady"] <= found["second step"]
        assert found["initialisation"] < found["optimizer step"] <= found["second step"]
        assert found["second step"] == rank_peak(run, rank).bytes


def test_items_add_up_and_the_worst_rank_is_named() -> None:
    """The ledger of a rank sums to its peak."""
    run = run_of("--pipeline-model-parallel-size 4 --global-batch-size 64")
    for peak in peaks(run):
        assert peak.bytes == sum(i.bytes for i in peak.items)
        assert all(i.bytes >= 0 for i in peak.items)
    assert worst(run).bytes == max(p.bytes for p in peaks(run))


def test_sharding_never_adds_state() -> None:
    """Weights, gradients and states of a rank fall as data parallelism rises."""
    sizes = [
        sum(i.bytes for i in state(run, run.stages[0]))
        for run in (run_of(world=world) for world in (1, 2, 4, 8))
    ]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1]


@pytest.mark.parametrize(("tp", "measured"), [(4, 40009.8), (8, 28965.4)])
def test_published_ranks_are_met_to_a_few_mib(tp: int, measured: float) -> None:
    """SimuMax B200 v1.2 (docs/b200/b200_release_v1.2_summary.json), rank 0, MiB.

    Llama-3-70B cut to 12 layers on 8 B200: nothing of these runs was fitted.
    """
    words = (
        "--num-layers 12 --hidden-size 8192 --ffn-hidden-size 28672 --swiglu "
        "--num-attention-heads 64 --num-query-groups 8 --seq-length 4096 "
        "--vocab-size 128256 --normalization RMSNorm --disable-bias-linear "
        "--position-embedding-type rope --untie-embeddings-and-output-weights "
        "--hidden-dropout 0.0 --attention-dropout 0.0 --use-distributed-optimizer "
        "--no-create-attention-mask-in-dataloader --cross-entropy-loss-fusion "
        f"--cross-entropy-fusion-impl te --tensor-model-parallel-size {tp} "
        "--sequence-parallel --global-batch-size 32"
    )
    run = read_run(Arguments.parse(shlex.split(words)), 8, "sm100")
    assert worst(run).bytes / MIB == pytest.approx(measured, abs=4)


def test_a_scripted_loss_keeps_two_more_copies() -> None:
    """Four 2-byte copies of the logits: 8 n V bytes."""
    run = run_of("--cross-entropy-loss-fusion")
    old = replace(run, software=replace(run.software, scripted=True))
    more = worst(old).bytes - worst(run).bytes
    assert more == 8 * 2 * 2048 * 32000


@pytest.mark.parametrize(
    ("device", "expected"),
    [("a100-80", "sm80"), ("H100", "sm90"), ("gb200", "sm100"), ("mi300x", "gfx9")],
)
def test_a_device_s_instruction_set_is_known(device: str, expected: str) -> None:
    """By the beginning of its name."""
    assert generation(device) == expected
    assert backend("sm80", deterministic=False) == "flash"


@given(st.integers(0, 2**37), st.integers(0, 2**33))
def test_the_allocator_reserves_at_least_what_it_allocates(
    allocated: int, temporary: int
) -> None:
    """With and without expandable segments, and more for larger temporaries."""
    plain = reserved(allocated, temporary)
    assert plain >= allocated and plain <= reserved(allocated, temporary + MIB)
    assert reserved(allocated, temporary, expandable=True) >= allocated


def test_temporaries_are_the_logits_or_the_head() -> None:
    """On the last rank n V 2 bytes; on a middle one the first projection."""
    run = run_of("--pipeline-model-parallel-size 4")
    tokens = 2 * 2048
    assert largest_temporary(run.model, run.stages[-1]) == 2 * tokens * 32000
    assert largest_temporary(run.model, run.stages[1]) == 2 * tokens * 2 * 4096


def test_each_group_of_several_ranks_has_a_communicator() -> None:
    """One rank needs none."""
    assert communicators({"a": 1, "b": 1}) == ()
    two = device_bytes(0, {"a": 2, "b": 8}) - device_bytes(0, {"a": 1, "b": 1})
    assert two == 2 * communicators({"a": 2})[0].bytes


BAND = Band("test", ((0.01, 0.9), (0.5, 1.0), (0.99, 1.2)))


@pytest.mark.parametrize(
    ("allocated", "limit", "expected"),
    [(100, 120, "fits"), (100, 119, "at risk"), (100, 90, "at risk")],
)
def test_a_verdict_leaves_the_band_room(
    allocated: int, limit: int, expected: str
) -> None:
    """Fits from the upper quantile on, at risk down to the lower one."""
    assert verdict(allocated, allocated, limit, BAND, 0.99) == expected
    assert verdict(allocated, allocated, 89, BAND, 0.99) == "does not fit"
    assert verdict(allocated, 130, 140, BAND, 0.99) == "at risk"


@given(st.integers(1, 2**38), st.floats(0.5, 0.995), st.floats(0.5, 0.995))
def test_more_confidence_never_makes_a_run_fit(
    size: int, first: float, second: float
) -> None:
    """What fits with more confidence fits with less, and so for what does not."""
    less, more = sorted((first, second))
    kind = band("megatron-dense")
    low, high = (verdict(size, size, 80 * 2**30, kind, c) for c in (less, more))
    if high != "at risk":
        assert low == high


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0])
def test_a_confidence_is_a_probability(confidence: float) -> None:
    """Neither 0 nor 1."""
    with pytest.raises(InputError, match="between 0 and 1"):
        BAND.quantile(confidence)
