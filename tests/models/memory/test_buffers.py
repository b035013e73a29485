"""Gradient and parameter buffers against Megatron's own, up to 1,024 ranks."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardproof.benchmarks.memory_cases import architecture_of
from shardproof.models.memory.buffers import (
    Parameter,
    chunk_parameters,
    data_parallel_buffers,
    fill,
)
from shardproof.models.stages import Chunk

DATA = Path(__file__).parent / "data" / "megatron_ddp_buffers.json"
CASES = json.loads(DATA.read_text())
LLAMA = {"norm": "RMSNorm", "glu": True, "pos": "rope", "impl": "te", "b": 1}
MODELS = {
    "llama3-8b-L2": LLAMA
    | {"h": 4096, "a": 32, "g": 8, "f": 14336, "s": 1024, "layers": 2, "vocab": 128256},
    "tiny-odd": LLAMA
    | {"h": 192, "a": 4, "f": 520, "s": 64, "layers": 2, "vocab": 1000},
    "mixtral-L1": LLAMA
    | {"h": 4096, "a": 32, "g": 8, "f": 14336, "moe_f": 14336, "experts": 8, "topk": 2}
    | {"s": 1024, "layers": 1, "vocab": 32000},
}


def label(entry):
    return "-".join(str(entry[k]) for k in ("name", "tp", "world", "distopt", "grad32"))


@pytest.mark.parametrize("entry", CASES, ids=label)
def test_golden_buffers(entry):
    architecture = architecture_of(MODELS[entry["name"]])
    layers = len(architecture.layers)
    chunk = Chunk(layers=(layers,), mtp=0, embedding=True, head=True)
    point = {"tp": entry["tp"], "ep": entry["ep"], "etp": 1}
    rows = architecture.vocab // entry["tp"]
    parameters = chunk_parameters(architecture, (0,) * layers, chunk, point, rows)
    assert sum(p.numbers for p in parameters) == entry["params"]
    sharded = entry["distopt"]
    got = data_parallel_buffers(
        parameters,
        dp=entry["dp"],
        cp=1,
        edp=entry["edp"],
        sharded=sharded,
        overlapped=sharded,
    )
    gradient = 4 if entry["grad32"] else 2
    assert [b.padded for b in got] == entry["buf_numel"]
    assert [b.buckets for b in got] == entry["buckets"]
    assert [gradient * b.padded for b in got] == entry["grad_buf"]
    assert [2 * b.padded if sharded else 0 for b in got] == entry["param_buf"]


@given(
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=30),
    ranks=st.integers(1, 96),
    bucket=st.none() | st.integers(1, 20000),
)
def test_laws_of_padding(sizes, ranks, bucket):
    parameters = [Parameter("x", size, expert=False) for size in sizes]
    plain = fill(parameters, ranks, bucket, sharded=False)
    padded = fill(parameters, ranks, bucket, sharded=True)
    assert plain.numbers == plain.padded == sum(sizes)
    assert padded.padded % ranks == 0
    assert padded.padded % 128 == 0
    most = 64 * len(sizes) + padded.buckets * ranks * 128
    assert sum(sizes) <= padded.padded <= sum(sizes) + most
    assert 1 <= padded.buckets <= len(sizes)


def test_a_tied_embedding_has_a_bucket_of_its_own():
    parameters = [
        Parameter("embedding", 1000, expert=False, alone=True),
        Parameter("layer", 100, expert=False),
    ]
    assert fill(parameters, 1, None, sharded=True).buckets == 2
    assert fill(parameters, 1, None, sharded=False).buckets == 1
