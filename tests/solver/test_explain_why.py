"""Why not this one: all broken rules at once, and the nearest feasible layouts."""

from dataclasses import replace

import pytest
from strategies import plain_problem

from shardproof.models.layout import AXES, NAMED_AXES, SCHEDULES, Layout
from shardproof.solver.domains import bind
from shardproof.solver.explain.why import rounded_layout, why
from shardproof.solver.feasible import enumerate_feasible
from shardproof.solver.single import complete_layout, evaluate

PROBLEM, SPACE = plain_problem()
PLAIN = {
    "tp": 1,
    "pp": 1,
    "vpp": 1,
    "cp": 1,
    "ep": 1,
    "etp": 1,
    "mbs": 1,
    "sp": 0,
    "schedule": 0,
    "split": 0,
    "recompute": 0,
    "sharding": 1,
}


def at(**axes: int) -> Layout:
    return rounded_layout(PROBLEM, PLAIN | axes)


def test_every_broken_rule_is_named_at_once() -> None:
    """Eight layers and heads, four key/value heads, 8 devices, 512 tokens."""
    found = why(PROBLEM, SPACE, at(tp=3, pp=5, ep=2, vpp=2, sp=1, schedule=1))
    assert {c.rule for c in found.clashes} == {
        "world-dense",
        "world-expert",
        "ep-moe",
        "heads-tp",
        "kv-tp",
        "seq-sp",
        "layers-pp",
        "vpp-microbatches",
    }
    assert "got tp=3" in next(c.sentence for c in found.clashes if c.rule == "heads-tp")


def test_missing_bytes_are_the_peak_less_the_device() -> None:
    layout = complete_layout(PROBLEM, {"tp": 2})
    peak = evaluate(PROBLEM, layout).memory.peak_bytes
    small = replace(PROBLEM.cluster.device, hbm_bytes=peak - 12345)
    problem = replace(PROBLEM, cluster=replace(PROBLEM.cluster, device=small))
    found = why(problem, SPACE, layout)
    assert [c.rule for c in found.clashes] == ["memory"]
    assert (found.peak_bytes, found.missing_bytes) == (peak, 12345)


def test_a_legal_layout_that_fits_has_nothing_to_answer_for() -> None:
    found = why(PROBLEM, SPACE, complete_layout(PROBLEM, {"tp": 2}))
    assert found.clashes == found.neighbours == ()
    assert found.missing_bytes == 0


def distance(one: Layout, other: Layout) -> tuple[int, int]:
    """Axes changed, and the values of the axes in between."""
    a, b = one.point(), other.point()
    values = bind(PROBLEM, SPACE).values
    changed = [n for n in AXES if a[n] != b[n]]
    steps = 0
    for name in changed:
        known = sorted({*values[name], a[name]})
        apart = abs(known.index(a[name]) - known.index(b[name]))
        steps += 1 if name in NAMED_AXES else apart
    return len(changed), steps


@pytest.mark.parametrize(
    "layout",
    [
        at(tp=2, sp=1, pp=3),
        at(tp=3),
        at(vpp=2),
        at(vpp=2, pp=2, schedule=SCHEDULES.index("1f1b")),
        at(tp=4, pp=4, sp=1),
    ],
)
def test_neighbours_are_the_nearest_of_the_whole_set(layout: Layout) -> None:
    """Compares with the distance to every feasible configuration."""
    found = why(PROBLEM, SPACE, layout, top=7)
    assert found.clashes
    everything = enumerate_feasible(PROBLEM, SPACE)
    nearest = sorted(distance(layout, other) for other in everything.layouts())[:7]
    assert [(len(n.changed), n.steps) for n in found.neighbours] == nearest
    for one in found.neighbours:
        assert one.layout in everything
        assert (len(one.changed), one.steps) == distance(layout, one.layout)
        choice = evaluate(PROBLEM, one.layout)
        assert one.peak_bytes == choice.memory.peak_bytes
        assert one.projection.step_time_s == choice.projection.step_time_s


def test_neighbours_keep_the_pins() -> None:
    pinned = replace(PROBLEM, pins={"pp": (2,)})
    found = why(pinned, SPACE, at(tp=3), top=4)
    assert [n.layout.pp for n in found.neighbours] == [2, 2, 2, 2]
