"""On ideal hardware a step takes its FLOPs over the peak, and nothing else.

FLOPs are counted here from published parameter totals: each weight of a product
takes part in three products of 2 FLOPs a token, each pair of a query and a key in
two products forward and five backward.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from time_cases import IDEAL, Columns, faster, on_one_device, one

from shardproof.models.catalogue import architecture
from shardproof.models.layout import RECOMPUTE_FULL
from shardproof.models.problem import Problem, Training
from shardproof.models.time import TimeModel, model_flops

TOKENS, SEQUENCES = 2048, 8
#: Total parameters, weights of the embedding, weights of norms, weights that a token
#: does not meet, layers, width of attention (heads * head dim).
PUBLISHED = {
    # Meta's model card; norms: two a layer and one before the head.
    "llama-3.1-8b": (8_030_261_248, 128_256 * 4096, 65 * 4096, 0, 32, 4096),
    # The safetensors total of Mistral's checkpoint; six experts of eight, each three
    # matrices, are not chosen.
    "mixtral-8x22b": (
        140_630_071_296,
        32_768 * 6144,
        113 * 6144,
        56 * 6 * 3 * 6144 * 16_384,
        56,
        6144,
    ),
}
PEAK = 100e12  # of the plain device


def ideal(name: str) -> Problem:
    problem = on_one_device(
        architecture(name), Training(seq_len=TOKENS, global_batch=SEQUENCES)
    )
    # With bandwidth without end only products take time.
    cluster = problem.cluster
    for what in ("hbm", "scale-up", "network"):
        cluster = faster(cluster, what, 1e18)
    fabric = replace(cluster.fabric, scale_up_latency=0.0, nic_latency=0.0)
    return replace(problem, cluster=replace(cluster, fabric=fabric))


def wanted_flops(name: str, *, recompute: bool = False) -> float:
    total, embedding, norms, idle, layers, width = PUBLISHED[name]
    head = embedding  # as many weights
    weights = total - embedding - norms - idle
    pairs = TOKENS * TOKENS / 2 * SEQUENCES
    products = 2 * TOKENS * SEQUENCES * (3 * weights + recompute * (weights - head))
    return products + 2 * pairs * width * layers * (7 + 2 * recompute)


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("mbs", [1, 4])
def test_one_device(name: str, mbs: int) -> None:
    found = TimeModel(ideal(name), IDEAL).refine(one(mbs=mbs, m=SEQUENCES // mbs))
    assert found.step_time[0] == pytest.approx(wanted_flops(name) / PEAK, rel=1e-9)


def test_full_recompute_runs_the_layers_again() -> None:
    columns = one(m=SEQUENCES, recompute=RECOMPUTE_FULL)
    found = TimeModel(ideal("llama-3.1-8b"), IDEAL).refine(columns)
    wanted = wanted_flops("llama-3.1-8b", recompute=True) / PEAK
    assert found.step_time[0] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("llama-3.1-8b", {"tp": 2, "sp": 1}),
        ("llama-3.1-8b", {"cp": 4}),
        ("llama-3.1-8b", {"dp": 8, "edp": 8, "m": 1}),
        ("llama-3.1-8b", {"tp": 2, "sp": 1, "cp": 2, "dp": 2, "m": 4}),
        ("mixtral-8x22b", {"ep": 8, "dp": 8, "m": 1}),
        ("mixtral-8x22b", {"tp": 2, "sp": 1, "ep": 2, "etp": 2, "dp": 2, "m": 4}),
        ("mixtral-8x22b", {"tp": 4, "sp": 1, "ep": 4}),
    ],
)
def test_devices_share_the_work(name: str, axes: dict[str, int]) -> None:
    """Without pipelines and costs every layout takes the same device seconds."""
    columns = one(**{"m": SEQUENCES, **axes})
    devices = axes.get("tp", 1) * axes.get("cp", 1) * axes.get("dp", 1)
    found = TimeModel(ideal(name), IDEAL).refine(columns)
    wanted = wanted_flops(name) / PEAK / devices
    assert found.step_time[0] == pytest.approx(wanted, rel=1e-9)


def test_pipeline_of_two_stages() -> None:
    """1F1B of two stages, worked out by hand on a chart.

    The first stage is never short of work after its warm-up if it is the slower one;
    then a step is its work, and the other stage's forward and backward of the first
    micro-batch.
    """
    problem = ideal("llama-3.1-8b")
    # More layers on the first stage than the head outweighs.
    arch = replace(problem.architecture, layers=problem.architecture.layers[:2])
    problem = replace(problem, architecture=replace(arch, vocab=128))
    model = TimeModel(problem, IDEAL)
    times = model.stage_times(one())
    layer, embedding, head = (
        times.names.index(n) for n in ("layer 0", "embedding", "head")
    )
    ahead, back = times.forward[:, 0], times.backward[:, 0]
    first = ahead[[layer, embedding]].sum() + back[[layer, embedding]].sum()
    last = ahead[[layer, head]].sum() + back[[layer, head]].sum()
    assert last > first
    columns = one(pp=2, m=5)
    found = model.refine(columns).step_time[0]
    # The last stage works without a pause, after the first forward and before the
    # last backward of the first stage.
    assert found == pytest.approx(5 * last + first, rel=1e-9)
    assert model.project(columns).step_time[0] == pytest.approx(found, rel=1e-9)


#: Layers, hidden width, sequence length and vocabulary of Narayanan et al. 2021.
GPT = {
    "megatron-22b": (48, 6144),
    "gpt3-175b": (96, 12_288),
    "megatron-530b": (105, 20_480),
}


@pytest.mark.parametrize("name", GPT)
def test_model_flops_by_the_published_formula(name: str) -> None:
    """72 B s l h^2 (1 + s / 6h + V / 12lh), equation 3 without recomputation."""
    layers, hidden = GPT[name]
    arch = architecture(name)
    s, b = 2048, 64
    wanted = 72 * b * s * layers * hidden**2
    wanted *= 1 + s / (6 * hidden) + arch.vocab / (12 * layers * hidden)
    assert model_flops(arch, s, b, causal=False) == pytest.approx(wanted, rel=1e-12)


def test_causal_model_flops_leave_out_half_of_attention() -> None:
    arch = architecture("llama-3.1-8b")
    both = model_flops(arch, 8192, 1, causal=False)
    half = model_flops(arch, 8192, 1)
    attention = 3 * 2 * 2 * 8192 * 8192 * 4096 * 32  # two products, three passes
    assert both - half == pytest.approx(attention / 2, rel=1e-12)


def test_mfu_is_model_flops_over_peak() -> None:
    name = "llama-3.1-8b"
    problem = ideal(name)
    found = TimeModel(problem, IDEAL).refine(one(m=SEQUENCES))
    # Only attention's fifth product of the backward is no model FLOP.
    total, embedding, norms, _, layers, width = PUBLISHED[name]
    pairs = TOKENS * TOKENS / 2 * SEQUENCES
    useful = 6 * TOKENS * SEQUENCES * (total - embedding - norms)
    useful += 12 * pairs * width * layers
    assert found.mfu[0] == pytest.approx(useful / wanted_flops(name), rel=1e-9)
    speed = TOKENS * SEQUENCES / (wanted_flops(name) / PEAK)
    assert found.tokens_per_s_per_gpu[0] == pytest.approx(speed, rel=1e-9)


def _batch(columns: Columns, count: int) -> Columns:
    return {name: np.repeat(column, count) for name, column in columns.items()}


def test_components_are_those_of_a_layer() -> None:
    problem = ideal("llama-3.1-8b")
    times = TimeModel(problem, IDEAL).stage_times(_batch(one(), 3))
    assert times.names == ("layer 0", "mtp", "embedding", "head")
    assert times.forward.shape == times.backward.shape == times.weight.shape == (4, 3)
    total, embedding, norms, _, layers, width = PUBLISHED["llama-3.1-8b"]
    weights = (total - 2 * embedding - norms) / layers
    forward = 2 * TOKENS * weights + 4 * (TOKENS**2 / 2) * width
    assert times.forward[0] == pytest.approx(forward / PEAK, rel=1e-9)
    assert times.weight[0] == pytest.approx(2 * TOKENS * weights / PEAK, rel=1e-9)
    assert (times.forward[1] == 0).all()
