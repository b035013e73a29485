"""A rank's peak over every axis: three interpreters, and laws of the new axes."""

import numpy as np
import pytest
from memory_samples import ARCHITECTURES, VALUES, dims_of, memory_of, point_of

from shardproof.models.expr import Evaluator, fits_int64, value
from shardproof.models.layout import (
    CP_STYLES,
    OFFLOADS,
    PRECISIONS,
    RECOMPUTE_BLOCK,
    RECOMPUTE_FULL,
    Dims,
)
from shardproof.models.memory import MemoryModel
from shardproof.models.pipeline.inflight import in_flight
from shardproof.models.problem import Training
from shardproof.models.stages import stages
from shardproof.solver.cpsat.encode import Encoder
from shardproof.solver.cpsat.enumerate import solutions

OPEN = {
    "tp": (1, 2, 4, 8),
    "cp": (1, 2, 4),
    "ep": (1, 2, 8),
    "etp": (1, 2),
    "mbs": (1, 2, 4),
    "sp": (0, 1),
    "recompute": (0, 1, 3, 24, RECOMPUTE_FULL, RECOMPUTE_FULL + 2, RECOMPUTE_BLOCK + 2),
    "sharding": (0, 1, 2, 3, 4, 5, 6),
    "dp": (4, 8, 64),
    "edp": (4, 8),
    "cp_style": tuple(range(len(CP_STYLES))),
    "precision": tuple(range(len(PRECISIONS))),
    "cross_entropy": (0, 1, 2),
    "offload": tuple(range(len(OFFLOADS))),
    "dispatcher": (0, 1, 2),
    "instances": (1, 2),
}
NAMES = sorted(ARCHITECTURES)


def open_memory(name):
    fixed = {n: (1,) for n in ("vpp", "m")} | {"pp": (2,), "schedule": (0,)}
    dims = Dims.of(OPEN | fixed | {"split": (0,)})
    training = Training(seq_len=4096, global_batch=64)
    return MemoryModel(ARCHITECTURES[name], training, dims)


def rank_of(name, rank):
    stage = stages(ARCHITECTURES[name], 0, 2, 1)[rank]
    return stage, in_flight("1f1b", 2, 1, 8)[rank]


def drawn(name, count):
    rng = np.random.default_rng(NAMES.index(name))
    columns = {n: rng.choice(values, count) for n, values in OPEN.items()}
    columns["sp"] = np.where(columns["tp"] > 1, columns["sp"], 0)
    return columns


@pytest.mark.parametrize(
    "count", [25, pytest.param(300, marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.parametrize("name", NAMES)
def test_ints_arrays_and_cp_sat_agree_on_random_layouts(name, count):
    rank = NAMES.index(name) % 2
    peak = open_memory(name).rank_peak(*rank_of(name, rank))
    assert fits_int64(peak)
    columns = drawn(name, count)
    arrays = Evaluator(columns)(peak)
    points = [{k: int(v[i]) for k, v in columns.items()} for i in range(count)]
    assert [value(peak, point) for point in points] == arrays.tolist()
    encoder = Encoder()
    bytes_ = encoder.model.new_int_var(peak.lo, peak.hi, "peak")
    encoder.model.add(encoder.term(peak) == bytes_)
    used = [n for n in OPEN if n in encoder.axes]
    axes = [encoder.axes[n] for n in used]
    rows = {
        tuple(p[n] for n in used): int(b) for p, b in zip(points, arrays, strict=True)
    }
    encoder.model.add_allowed_assignments(axes, list(rows))
    seen = {row[:-1]: row[-1] for row in solutions(encoder.model, [*axes, bytes_])}
    assert seen == rows


def of(name, **chosen):
    """The memory of one layout, and its point."""
    plain = {"pp": 2, "dp": 8, "edp": 8, "mbs": 2, "sharding": 0}
    point = point_of(**plain | chosen)
    values = {n: (v,) for n, v in point.items()}
    dims = Dims.of({n: values.get(n, (1,)) for n in {**VALUES, **values}})
    training = Training(seq_len=4096, global_batch=64)
    return MemoryModel(ARCHITECTURES[name], training, dims)


def peak_of(name, **chosen):
    return value(of(name, **chosen).rank_peak(*rank_of(name, 1)), {})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "chosen",
    [
        {"precision": 2, "tp": 2, "sp": 1},
        {"precision": 6, "tp": 4, "sp": 1},
        {"offload": 3, "recompute": RECOMPUTE_BLOCK + 1},
        {"recompute": RECOMPUTE_FULL + 3, "cross_entropy": 2},
        {"cp_style": 4, "cp": 2, "sharding": 4},
    ],
)
def test_items_sum_to_the_peak_on_new_axes(name, chosen):
    memory, held = of(name, **chosen), rank_of(name, 1)
    items = memory.ledger_at(*held, {})
    assert sum(size for _, size in items) == value(memory.rank_peak(*held), {})


@pytest.mark.parametrize("name", NAMES)
def test_what_offload_takes_from_the_device_lies_on_the_host(name):
    held = rank_of(name, 1)
    kept, sent = (of(name, offload=code) for code in (0, 1))
    freed = value(kept.rank_peak(*held), {}) - value(sent.rank_peak(*held), {})
    host = value(sent.host(*held), {})
    numbers = value(kept.rank_parameters(held[0]), {})
    assert freed == 12 * numbers
    assert host == (12 + 4) * numbers
    assert value(kept.host(*held), {}) == 0
    both = of(name, offload=2)
    assert value(both.host(*held), {}) > 0
    assert value(both.rank_peak(*held), {}) < value(kept.rank_peak(*held), {})


def test_instances_keep_states_whole_in_each():
    one, two = (of("dense", sharding=1, instances=n) for n in (1, 2))
    stage = rank_of("dense", 1)[0]
    numbers = value(one.rank_parameters(stage), {})
    more = value(two.state.peak(stage), {}) - value(one.state.peak(stage), {})
    assert more == -(-12 * numbers // 4) + 12 * numbers // -8


@pytest.mark.parametrize("name", NAMES)
def test_eight_bits_keep_less_than_sixteen_but_copy_weights(name):
    wide, narrow = of(name), of(name, precision=PRECISIONS.index("mxfp8"))
    stage = rank_of(name, 1)[0]
    for kind in range(wide.kind_count):
        component = f"layer {kind}"
        assert value(narrow.saved(component), {}) < value(wide.saved(component), {})
    assert value(wide.copies(stage), {}) == 0
    projections = value(narrow.state.counts(narrow.state.numbers(stage))[1], {})
    assert value(narrow.copies(stage), {}) > 2 * projections


def test_a_micro_batch_keeps_one_input_of_each_group():
    stage, _ = rank_of("dense", 1)
    layer_input = 2 * 4096 * 2 * 4096  # bytes of s b h numbers of 16 bits
    head = sum(value(of("dense").saved(part), {}) for part in ("loss", "final norm"))
    for group, inputs in ((1, 4), (2, 2), (3, 2), (4, 1)):
        code = RECOMPUTE_FULL + (group if group > 1 else 0)
        memory = of("dense", recompute=code)
        few, many = (value(memory.rank_peak(stage, ((held,),)), {}) for held in (4, 8))
        assert many - few == 4 * (inputs * layer_input + head)


def test_a_block_of_no_layers_would_recompute_none():
    none, first, rest = (
        peak_of("dense", recompute=code)
        for code in (0, RECOMPUTE_BLOCK + 1, RECOMPUTE_BLOCK + 4)
    )
    assert rest < first < none


def test_axes_left_alone_change_nothing():
    named = memory_of("moe").rank_peak(*rank_of("moe", 0))
    dims = dims_of(cross_entropy=0, precision=0, offload=0)
    training = Training(seq_len=4096, global_batch=64)
    again = MemoryModel(ARCHITECTURES["moe"], training, dims)
    assert again.rank_peak(*rank_of("moe", 0)) is named
