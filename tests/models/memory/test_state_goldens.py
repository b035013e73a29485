"""Buffers and Adam's states against the framework's own, on a first rank."""

import json
from pathlib import Path

import pytest

from shardproof.benchmarks.memory_cases import architecture_of, dims_of, kernels_of
from shardproof.models.expr import value
from shardproof.models.memory.buffers import chunk_parameters, data_parallel_buffers
from shardproof.models.memory.optimizers import recipe
from shardproof.models.memory.state import State
from shardproof.models.stages import Chunk

DATA = Path(__file__).parent / "data" / "megatron_state.json"
CASES = json.loads(DATA.read_text())


def label(entry):
    keys = (
        "tp",
        "pp",
        "pre",
        "ep",
        "cp",
        "world",
        "distopt",
        "grad32",
        "moments",
        "remainders",
    )
    case = entry["case"]
    return "-".join([entry["name"], *(f"{k}={case[k]}" for k in keys if k in case)])


def recipe_of(case):
    if "moments" not in case:
        narrow = not case.get("grad32", True)
        return "megatron-adam-bf16-grads" if narrow else "megatron-adam"
    kept = "remainders" if case.get("remainders", True) else "state"
    return f"megatron-adam-bf16-{kept}"


def held(case):
    layers, ends = case["layers"] // case.get("pp", 1), ("pre", "post")
    embedding, head = (case.get(end, True) for end in ends)
    return Chunk(layers=(layers,), mtp=0, embedding=embedding, head=head)


def buffers_of(case, entry):
    architecture = architecture_of(case)
    tp = case.get("tp", 1)
    point = {"tp": tp, "ep": case.get("ep", 1), "etp": case.get("etp", 1)}
    parameters = chunk_parameters(
        architecture,
        (0,) * held(case).layers[0],
        held(case),
        point,
        architecture.vocab // tp,
    )
    cp = case.get("cp", 1)
    return data_parallel_buffers(
        parameters,
        dp=entry["dp"] // cp,
        cp=cp,
        edp=entry["edp"],
        sharded=case["distopt"],
        overlapped=case["distopt"],
        first=held(case).embedding,
    )


@pytest.mark.parametrize("entry", CASES, ids=label)
def test_buffers(entry):
    case = entry["case"]
    got = buffers_of(case, entry)
    gradient = recipe(recipe_of(case)).gradients
    assert [b.padded for b in got] == entry["buf_numel"]
    assert [b.buckets for b in got] == entry["buckets"]
    assert [gradient * b.padded for b in got] == entry["grad_buf"]
    kept = [2 * b.padded if case["distopt"] else 0 for b in got]
    assert kept == entry["param_buf"]


@pytest.mark.parametrize("entry", CASES, ids=label)
def test_optimizer_states(entry):
    """The share of a first rank to the byte, but for padding within its range."""
    case = entry["case"]
    state = State(
        architecture_of(case), dims_of(case), recipe_of(case), 1, kernels_of(case)
    )
    dense, expert = (value(n, {}) for n in state.counts(state.numbers((held(case),))))
    assert dense + expert == entry["params"]
    per_number = recipe(recipe_of(case)).states
    size = entry["masters"] + entry["states"]
    if not case["distopt"]:
        assert size == per_number * (dense + expert)
        return
    got, shards = buffers_of(case, entry), (entry["dp"], entry["edp"])
    ranges = sum(b.padded // n for b, n in zip(got, shards, strict=False))
    padding = sum(b.padded - b.numbers for b in got)
    assert per_number * (ranges - padding) <= size <= per_number * ranges
    if not padding:
        assert size == per_number * ranges
