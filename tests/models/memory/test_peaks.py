"""Laws of a rank's peak, and its three interpreters on the same points."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_samples import ARCHITECTURES, VALUES, memory_of, point_of, training_of

from shardproof.models.errors import InputError
from shardproof.models.expr import Evaluator, fits_int64, value
from shardproof.models.layout import RECOMPUTE_FULL
from shardproof.models.pipeline.inflight import in_flight
from shardproof.models.stages import stages
from shardproof.solver.cpsat.encode import Encoder
from shardproof.solver.cpsat.enumerate import solutions

NAMES = sorted(ARCHITECTURES)
SHARED = ("tp", "cp", "ep", "etp", "mbs", "sp", "recompute", "sharding", "dp", "edp")


def rank_of(name, pp=2, vpp=1, m=8, rank=0):
    schedule = "1f1b" if vpp == 1 else "interleaved"
    stage = stages(ARCHITECTURES[name], 0, pp, vpp)[rank]
    return stage, in_flight(schedule, pp, vpp, m)[rank]


def drawn_points(seed, count):
    """Draw legal points: sp only with tp, dp and edp free."""
    rng = np.random.default_rng(seed)
    columns = {n: rng.choice(VALUES[n], count) for n in SHARED}
    columns["sp"] = np.where(columns["tp"] > 1, columns["sp"], 0)
    return columns | {"pp": np.full(count, 2)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rank", [0, 1])
def test_ints_equal_arrays_on_random_layouts(name, rank):
    memory = memory_of(name, pp=2, vpp=1)
    peak = memory.rank_peak(*rank_of(name, rank=rank))
    assert fits_int64(peak)
    columns = drawn_points(rank, 150)
    arrays = Evaluator(columns)(peak)
    for index in range(150):
        point = {k: int(v[index]) for k, v in columns.items()}
        assert value(peak, point) == arrays[index]


@pytest.mark.parametrize("name", NAMES)
def test_cp_sat_equals_arrays_on_whole_grids(name):
    values = {
        "tp": (1, 2, 8),
        "sp": (0, 1),
        "mbs": (1, 4),
        "cp": (1, 2),
        "recompute": (0, 3, RECOMPUTE_FULL),
        "sharding": (0, 1),
        "dp": (3, 8),
        "ep": (1, 8),
        "edp": (1, 3),
    }
    fixed = {n: 1 for n in ("etp", "vpp", "m")} | {"pp": 2, "schedule": 0}
    memory = memory_of(name, **values, **fixed)
    peak = memory.rank_peak(*rank_of(name, rank=1))
    encoder = Encoder()
    bytes_ = encoder.model.new_int_var(peak.lo, peak.hi, "peak")
    encoder.model.add(encoder.term(peak) == bytes_)
    used = [n for n in values if n in encoder.axes]
    variables = [*(encoder.axes[n] for n in used), bytes_]
    seen = {row[:-1]: row[-1] for row in solutions(encoder.model, variables)}
    points = list(product(*(values[n] for n in used)))
    columns = {n: np.array([p[i] for p in points]) for i, n in enumerate(used)}
    expected = Evaluator(columns)(peak)
    assert len(points) >= 144
    assert seen == dict(zip(points, expected.tolist(), strict=True))


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    tp=st.sampled_from([1, 2, 4]),
    pp=st.sampled_from([1, 2, 4]),
    vpp=st.sampled_from([1, 2]),
    recompute=st.sampled_from(VALUES["recompute"]),
    data=st.data(),
)
def test_items_sum_to_the_peak(name, tp, pp, vpp, recompute, data):
    vpp = vpp if pp > 1 else 1
    rank = data.draw(st.integers(0, pp - 1))
    held = rank_of(name, pp=pp, vpp=vpp, rank=rank)
    memory = memory_of(name, pp=pp, vpp=vpp)
    sizes = {"mbs": 2, "cp": 2, "ep": 4, "etp": 2, "dp": 3, "edp": 3}
    chosen = sizes | {"tp": tp, "pp": pp, "vpp": vpp, "recompute": recompute}
    point = point_of(sp=int(tp > 1), **chosen)
    items = memory.ledger_at(*held, point)
    assert sum(size for _, size in items) == value(memory.rank_peak(*held), point)
    assert all(size > 0 for _, size in items)


@pytest.mark.parametrize("name", NAMES)
def test_more_tensor_parallelism_never_raises_state_or_kept_bytes(name):
    memory = memory_of(name)
    for tp in (1, 2, 4):
        for sharding in (0, 1):
            few = point_of(tp=tp, sharding=sharding, dp=8, edp=8)
            many = few | {"tp": 2 * tp, "sp": 1}
            few["sp"] = int(tp > 1)
            state = memory.state.peak(rank_of(name)[0])
            assert value(state, many) < value(state, few)
            assert value(memory.saved("layer 0"), many) <= value(
                memory.saved("layer 0"), few
            )


def test_kept_bytes_are_linear_in_layers_and_micro_batches():
    memory = memory_of("dense", pp=2, vpp=1)
    stage, _ = rank_of("dense")
    peaks = [
        value(memory.rank_peak(stage, ((held,),)), point_of(pp=2)) for held in (1, 2, 4)
    ]
    layer = value(memory.saved("layer 0"), point_of())
    assert peaks[1] - peaks[0] == 4 * layer
    assert peaks[2] - peaks[1] == 8 * layer


def test_the_fuller_of_two_moments_decides():
    memory = memory_of("dense", pp=2, vpp=2)
    stage = stages(ARCHITECTURES["dense"], 0, 2, 2)[0]
    point = point_of(pp=2, vpp=2)
    apart = [value(memory.rank_peak(stage, (v,)), point) for v in ((3, 1), (1, 2))]
    both = value(memory.rank_peak(stage, ((3, 1), (1, 2))), point)
    assert both == max(apart)


def test_recomputing_attention_costs_more_than_it_frees_with_rotation():
    memory = memory_of("dense")
    kept = memory.saved("layer 0")
    without, with_core = (value(kept, point_of(recompute=code)) for code in (0, 1))
    assert with_core > without


def test_full_recompute_keeps_the_input_alone():
    memory = memory_of("latent")
    kept = value(memory.saved("layer 0"), point_of(recompute=RECOMPUTE_FULL, mbs=2))
    assert kept == 2 * 2 * 4096 * 4096


def test_bytes_per_parameter_of_the_recipe():
    # 18 bytes without the distributed optimizer, 6 + 12 / (dp cp) with it: Megatron-LM
    # documentation of the distributed optimizer.
    memory = memory_of("dense", pp=1, vpp=1)
    stage, _ = rank_of("dense", pp=1)
    state, numbers = memory.state.peak(stage), memory.rank_parameters(stage)
    whole = point_of(sharding=0, dp=64)
    split = point_of(sharding=1, dp=64)
    count = value(numbers, whole)
    assert value(state, whole) == 18 * count
    assert value(state, split) == 6 * count + -(-12 * count // 64)


def test_tied_embeddings_are_one_tensor_on_one_rank_and_two_on_two():
    tied, apart = memory_of("tied"), memory_of("dense")
    words = 128256 * 4096

    def numbers(memory, pp):
        on = stages(memory.architecture, 0, pp, 1)
        return sum(value(memory.rank_parameters(s), point_of()) for s in on)

    assert numbers(apart, 1) - numbers(tied, 1) == words
    assert numbers(apart, 2) == numbers(tied, 2)


def test_unknown_optimizer_names_the_nearest():
    memory = memory_of("dense", training_of(optimizer="megatron-adm"))
    with pytest.raises(InputError, match="megatron-adam"):
        memory.rank_peak(*rank_of("dense"))
