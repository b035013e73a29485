"""Kernels against rooflines worked out by hand, and measured layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from time_cases import IDEAL, one

from shardproof.models.architecture import Layer, MoE
from shardproof.models.catalogue import architecture, cluster
from shardproof.models.cluster import Device
from shardproof.models.profiles import GemmLaw, load_profile
from shardproof.models.time.attention import pairs_of
from shardproof.models.time.collectives import Links
from shardproof.models.time.feed_forward import feed_forward_work
from shardproof.models.time.grouping import distinct, groups
from shardproof.models.time.kernels import Kernels
from shardproof.models.time.pricer import Pricer
from shardproof.models.time.run import PLAIN
from shardproof.models.time.shape import Shape

DEVICE = Device(
    name="plain",
    vendor="nvidia",
    hbm_bytes=2**34,
    nominal_hbm_gb=16.0,
    peak_flops={"bf16": 100e12},
    hbm_bandwidth=1e12,
    host_bandwidth=1e10,
)


def kernels(law: GemmLaw | None = None) -> Kernels:
    profile = replace(IDEAL, gemm={"bf16": law}) if law else IDEAL
    return Kernels(DEVICE, profile, "bf16", 4)


def test_compute_bound_product() -> None:
    """2 * 4096^3 FLOPs at 100 TFLOP/s; backward is two products."""
    work = kernels().gemm(4096.0, 4096.0, 4096.0)
    wanted = 2 * 4096**3 / 100e12
    assert work.forward_time[0] == pytest.approx(wanted, rel=1e-12)
    assert work.backward_time[0] == pytest.approx(2 * wanted, rel=1e-12)
    assert work.weight == pytest.approx(wanted, rel=1e-12)


def test_efficiency_law() -> None:
    """0.75 * 512 / 768 * 1024 / 1280 with a smallest side of 512, 1,024 tokens."""
    law = GemmLaw(ceiling=0.75, saturation=256, grouped=1)
    work = kernels(law).gemm(1024.0, 8192.0, 512.0)
    wanted = 2 * 1024 * 8192 * 512 / (100e12 * 0.4)
    assert work.forward_time[0] == pytest.approx(wanted, rel=1e-12)


def test_memory_bound_product() -> None:
    """16 tokens read the weights once and add to gradients of 4 bytes."""
    work = kernels().gemm(16.0, 4096.0, 4096.0)
    ends, weights = 16 * 8192, 4096**2
    forward = (ends + weights) * 2 / 1e12
    weight = (ends * 2 + weights * 8) / 1e12
    assert work.forward_time[0] == pytest.approx(forward, rel=1e-12)
    assert work.backward_time[0] == pytest.approx(forward + weight, rel=1e-12)


@pytest.mark.parametrize("window", [None, 3, 8, 20])
def test_attention_pairs(window: int | None) -> None:
    """Counted one by one, half a pair for a token with itself."""
    count = sum(
        0.5 if key == query else 1.0
        for query in range(8)
        for key in range(query + 1)
        if window is None or query - key < window
    )
    # A window's far end is a diagonal of halves as well.
    edge = 0.0 if window is None or window >= 8 else 0.5 * (8 - window)
    assert pairs_of(8, window) == count + edge


#: Forward and backward of one MoE layer's feed-forward part on 8 H100 with ep 8, one
#: sequence of 4,096 tokens a rank, bf16, all-to-all dispatcher, in ms. Source:
#: NVIDIA/Megatron-LM tests/functional_tests/test_cases/common/moe_perf/baseline.json
#: at commit d98e8a6. Kernels run hotter in such a short test than in training.
MOE_LAYERS = {
    "mixtral": (4096, MoE(experts=8, topk=2, ffn=14_336, gated=True), 4.33, 7.68),
    "deepseek": (
        7168,
        MoE(experts=32, topk=8, ffn=2048, gated=True, shared_ffn=2048),
        7.12,
        10.48,
    ),
}


@pytest.mark.parametrize("name", MOE_LAYERS)
def test_measured_moe_layers(name: str) -> None:
    hidden, moe, forward, backward = MOE_LAYERS[name]
    machine, profile = cluster("1x8:h100"), load_profile("hopper")
    ones = np.ones(1, np.int64)
    columns = one(ep=8, dp=8) | {
        "shards": ones,
        "expert_shards": ones,
        "gathered": 0 * ones,
    }
    shape = Shape(columns, 4096, Links(machine, profile))
    pricer = Pricer(
        Kernels(machine.device, profile, "bf16", 4), profile, shape, hidden, PLAIN
    )
    works = feed_forward_work(pricer, moe).values()
    ahead = 1e3 * sum(w.forward_time[0] for w in works)
    back = 1e3 * sum(w.backward_time[0] for w in works)
    for found, measured in ((ahead, forward), (back, backward)):
        assert 0.9 * measured < found < 1.6 * measured


def test_every_layer_of_the_catalogue_is_priced() -> None:
    """No kind of layer is left without attention, products or elementwise work."""
    profile, machine = load_profile("hopper"), cluster("1x8:h100")
    from shardproof.models.time.layer import layer_work

    ones = np.ones(1, np.int64)
    columns = one() | {"shards": ones, "expert_shards": ones, "gathered": 0 * ones}
    shape = Shape(columns, 4096, Links(machine, profile))
    for name in ("deepseek-v3", "gpt-oss-120b", "gemma-2-9b", "qwen3-30b-a3b"):
        arch = architecture(name)
        kernels = Kernels(machine.device, profile, "bf16", 4)
        pricer = Pricer(kernels, profile, shape, arch.hidden, PLAIN)
        for kind in arch.kinds:
            assert isinstance(kind, Layer)
            work = layer_work(pricer, kind)
            parts = {"attention", "gemm", "elementwise", "experts"}
            if not kind.is_moe:
                parts.remove("experts")
            for part in parts:
                assert work.forward[part].max() > 0, (name, part)
                assert work.backward[part].max() > work.forward[part].max()


_COLUMN = st.lists(st.sampled_from([0, 1, 3, 2**21, 2**40]), min_size=1, max_size=30)


@given(_COLUMN, _COLUMN, st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_distinct_rows_are_numpys(a: list[int], b: list[int], c: list[int]) -> None:
    size = min(len(a), len(b), len(c))
    lists = {"a": a, "b": b, "c": c}
    columns = {n: np.array(x[:size], np.int64) for n, x in lists.items()}
    found, row = distinct(columns, "abc")
    table = np.stack(list(columns.values()), axis=1)
    wanted = np.unique(table, axis=0)
    assert (np.stack([found[n] for n in "abc"], axis=1) == wanted).all()
    assert (wanted[row] == table).all()
    seen = {key: rows.tolist() for key, rows in groups(columns, "abc")}
    assert len(seen) == len(wanted)
    for key, rows in seen.items():
        same = (table == np.array(key)).all(axis=1)
        assert rows == np.flatnonzero(same).tolist()
