"""Peaks: dropping ranks and sharing shapes changes no byte, and 64 bits are enough."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from strategies import plain_problem, problems

from shardproof.models.expr import fits_int64, values
from shardproof.models.layout import PRECISIONS, SCHEDULES
from shardproof.models.pipeline.inflight import in_flight
from shardproof.models.problem import Problem
from shardproof.models.stages import stages
from shardproof.solver.domains import bind
from shardproof.solver.feasible import NAMES, enumerate_feasible
from shardproof.solver.peaks import Peaks, undominated
from shardproof.solver.single import domains_of, rank_peaks
from shardproof.solver.space import Space
from shardproof.solver.vector import legal_points


@given(problems())
@settings(max_examples=60, deadline=None)
def test_arrays_give_the_worst_of_all_ranks(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    domains = bind(problem, space)
    memory, points = Peaks(domains), legal_points(domains)
    peaks = memory.of_points(points)[points.legal]
    columns = points.columns()
    picks = np.random.default_rng(1).integers(0, points.count, 12)
    for i in map(int, picks):
        point = {n: int(columns[n][i]) for n in NAMES}
        schedule = SCHEDULES[point["schedule"]]
        held = in_flight(schedule, point["pp"], point["vpp"], point["m"])
        on = stages(problem.architecture, point["split"], point["pp"], point["vpp"])
        ranks = zip(on, held, strict=True)
        every = values([memory.model.rank_peak(*r) for r in ranks], point)
        assert peaks[i] == max(every)


@given(problems())
@settings(max_examples=40, deadline=None)
def test_64_bits_hold_every_intermediate(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    domains = bind(problem, space)
    memory, points = Peaks(domains), legal_points(domains)
    memory.of_points(points)
    assert all(fits_int64(*shape) for shape in memory._shapes.values())


@given(problems())
@settings(max_examples=25, deadline=None)
def test_cp_sat_fits_what_arrays_fit(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    found = enumerate_feasible(problem, space, engine="both")
    assert found.count <= found.legal_count


def test_an_undominated_rank_stays() -> None:
    problem, space = plain_problem()
    domains = bind(problem, space)
    memory = Peaks(domains)
    key = memory.key(
        {"schedule": 0, "pp": 4, "vpp": 1, "split": 0, "m": 8, "tp": 1, "cp": 1}
    )
    ranks = memory.ranks(key)
    kept = undominated(ranks)
    # The first holds the embedding and most micro-batches, the last the head.
    assert ranks[0] in kept
    assert ranks[3] in kept
    assert ranks[2] not in kept


def test_the_worst_rank_of_a_layout_is_named() -> None:
    problem, space = plain_problem()
    found = enumerate_feasible(problem, space)
    deep = next(x for x in found.layouts() if x.pp == 4)
    per_rank = rank_peaks(bind(problem, space), deep)
    assert len(per_rank) == 4
    assert max(per_rank) <= problem.cluster.device.hbm_bytes


def test_less_memory_never_adds_a_configuration() -> None:
    roomy = enumerate_feasible(*plain_problem(hbm_bytes=2**33))
    tight = enumerate_feasible(*plain_problem(hbm_bytes=2**30))
    assert set(tight.layouts()) < set(roomy.layouts())


def with_formats(problem: Problem, *formats: str) -> Problem:
    device = problem.cluster.device
    device = replace(device, peak_flops=dict.fromkeys(("bf16", *formats), 1e15))
    return replace(problem, cluster=replace(problem.cluster, device=device))


def test_devices_that_read_eight_bits_either_way_keep_one_copy_of_weights() -> None:
    problem, space = plain_problem()
    wide = next(
        x for x in enumerate_feasible(problem, space).layouts() if x.tp == x.pp == 1
    )
    layout = replace(wide, precision=PRECISIONS.index("fp8-tensor"))
    machines = with_formats(problem, "fp8"), with_formats(problem, "fp8", "mxfp8")
    (two,), (one,) = (rank_peaks(domains_of(p, layout), layout) for p in machines)
    # Queries, keys and values; output; three of the gated network; of eight layers.
    assert two - one == 8 * 512 * ((512 + 2 * 256) + 512 + 3 * 1536)
