"""Whole ranks of nanotron and torchtitan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardproof.models.architecture import (
    Architecture,
    Attention,
    DenseFFN,
    Layer,
    MoE,
)
from shardproof.models.errors import InputError
from shardproof.models.memory.library_nanotron import (
    NanotronRun,
    nanotron_peaks,
    nanotron_stages,
)
from shardproof.models.memory.library_torchtitan import (
    TorchtitanRun,
    torchtitan_peaks,
)

GIB = 2**30


def llama(
    layers: int, hidden: int, ffn: int, heads: int, groups: int, vocab: int
) -> Architecture:
    """Build a dense Llama with separate embeddings."""
    layer = Layer(
        attention=Attention(heads=heads, kv_heads=groups, head_dim=hidden // heads),
        feed_forward=DenseFFN(ffn=ffn, gated=True),
    )
    return Architecture(
        name="llama", hidden=hidden, vocab=vocab, layers=(layer,) * layers
    )


SMALL = replace(llama(16, 2048, 8192, 32, 32, 131072), tied=True)
LARGE = llama(32, 4096, 14336, 32, 32, 131072)
LLAMA3 = llama(32, 4096, 14336, 32, 8, 128256)


@pytest.mark.parametrize(
    ("pp", "layers"),
    [
        # 16 layers of 4 h^2 + 3 h f = 67.1 M and a head of h V = 268.4 M products,
        # which is 4 layers: shares of 20, 10 and 5 layers fall between blocks, one of
        # 2.5 layers within a block, which the rank that began it keeps.
        (1, [16]),
        (2, [10, 6]),
        (4, [5, 5, 5, 1]),
        (8, [3, 2, 3, 2, 3, 2, 1, 0]),
    ],
)
def test_blocks_are_dealt_by_cost(pp: int, layers: list[int]) -> None:
    """A rank is full once its blocks reach its share; the head may leave one empty."""
    stages = nanotron_stages(SMALL, pp)
    assert [count for count, _, _ in stages] == layers
    assert stages[0][1] and (stages[-1][2] or (pp == 8 and stages[-2][2]))
    assert sum(embedding for _, embedding, _ in stages) == 1


@given(st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_every_layer_is_dealt_once(pp: int) -> None:
    """Layers, embedding and head lie on some rank, in order."""
    stages = nanotron_stages(LARGE, pp)
    assert sum(count for count, _, _ in stages) == 32
    assert [e for _, e, _ in stages].count(True) == 1
    assert [h for _, _, h in stages].count(True) == 1


def nanotron(**changes: object) -> int:
    """Return the fullest rank's bytes of a run of the 1.34 B model."""
    values: dict[str, object] = {
        "architecture": SMALL,
        "seq_len": 4096,
        "tp": 1,
        "pp": 1,
        "dp": 8,
        "mbs": 1,
        "m": 32,
        "sharded": False,
    }
    run = NanotronRun(**{**values, **changes})  # type: ignore[arg-type]
    return max(peak.bytes for peak in nanotron_peaks(run))


@pytest.mark.parametrize(
    ("changes", "measured"),
    [
        # Hugging Face, ultrascale playbook, benchmarks_interactive.html: GiB.
        ({}, 36.7),
        ({"mbs": 2, "m": 16}, 50.2),
        ({"sharded": True, "dp": 64, "m": 4}, 23.8),
        ({"pp": 8, "dp": 8, "sharded": True, "mbs": 2, "m": 16}, 24.4),
        ({"architecture": LARGE, "pp": 8, "dp": 16, "sharded": True, "m": 16}, 45.7),
    ],
)
def test_published_peaks_are_near(changes: dict[str, object], measured: float) -> None:
    """Within a tenth, the 95th percentile of rows with one tensor-parallel rank."""
    assert nanotron(**changes) / GIB == pytest.approx(measured, rel=0.1)


def test_more_ranks_never_need_more() -> None:
    """Sharding the optimizer, tensor and sequence parallelism each free memory."""
    assert nanotron(sharded=True) < nanotron()
    assert nanotron(tp=4) < nanotron(tp=2) < nanotron()
    assert nanotron(tp=4, sp=True) < nanotron(tp=4, sp=False)
    assert nanotron(m=1) < nanotron(m=2)


def titan(**changes: object) -> int:
    """Return the fullest rank's bytes of Llama-3-8B on 128 devices."""
    values: dict[str, object] = {
        "architecture": LLAMA3,
        "seq_len": 8192,
        "tp": 1,
        "pp": 1,
        "cp": 1,
        "dp": 128,
        "mbs": 2,
        "flight": 1,
        "checkpoint": "op",
        "compiled": True,
    }
    run = TorchtitanRun(**{**values, **changes})  # type: ignore[arg-type]
    return max(peak.bytes for peak in torchtitan_peaks(run))


def test_torchtitan_shards_sixteen_bytes_a_parameter() -> None:
    """From 128 to 8 devices the state alone grows: 16 N (1/8 - 1/128)."""
    numbers = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096)
    numbers += 2 * 128256 * 4096 + 4096
    grown = titan(dp=8) - titan()
    assert grown == pytest.approx(16 * numbers * (1 / 8 - 1 / 128), rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "measured"),
    [
        # pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, GiB reserved.
        ({}, 62.0),
        ({"compiled": False}, 67.0),
        ({"dp": 8}, 77.0),
        ({"dp": 8, "seq_len": 65536, "cp": 2, "mbs": 1, "checkpoint": "full"}, 84.2),
    ],
)
def test_torchtitan_s_tables_are_near(
    changes: dict[str, object], measured: float
) -> None:
    """Allocated bytes lie below the reserved ones, by a tenth at most."""
    assert 0.9 * measured <= titan(**changes) / GIB <= measured


def test_checkpoints_free_memory() -> None:
    """Whole layers free most, every second product less."""
    assert titan(checkpoint="full") < titan() < titan(checkpoint="none")


def test_experts_are_refused() -> None:
    """Neither stack's mixture of experts is modelled."""
    moe = MoE(experts=8, topk=2, ffn=64, gated=True)
    layer = replace(SMALL.layers[0], feed_forward=moe)
    sparse = replace(SMALL, layers=(layer,))
    for build in (nanotron, titan):
        with pytest.raises(InputError, match="dense"):
            build(architecture=sparse)
