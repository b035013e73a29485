"""Problems and spaces in the words of the brute force, every axis included."""

from dataclasses import replace

from hypothesis import strategies as st
from oracles import brute_force, brute_force_axes
from strategies import problems
from test_legal_sets import facts_of

from shardproof.models.architecture import Attention
from shardproof.models.layout import (
    OPTIONAL,
    OVERLAPS,
    axis_code,
    axis_label,
    recompute_code,
)
from shardproof.models.problem import Problem
from shardproof.solver.space import Space

NAMED = (
    "schedule",
    "split",
    "sharding",
    "cp_style",
    "precision",
    "cross_entropy",
    "offload",
    "dispatcher",
)
Drawn = tuple[Problem, Space]
Words = dict[str, list[object]]


def word(name: str, code: int) -> object:
    """Return one value as the brute force reads it."""
    label = axis_label(name, code)
    if name == "recompute":
        full = label.startswith("full")
        return label if full else frozenset(label.split("+")) - {"none"}
    return label if name in NAMED else code


def code(name: str, found: object) -> int:
    """Return the code of a value of the brute force."""
    if isinstance(found, frozenset):
        return recompute_code("+".join(sorted(found)) or "none")
    return axis_code(name, found) if isinstance(found, str) else int(str(found))


def words_of(problem: Problem, space: Space) -> Words:
    """Return the values of every axis that the space lists."""
    return {n: [word(n, c) for c in space.values(n, problem)] for n in space.axes}


def wide_facts(problem: Problem, space: Space) -> brute_force.Facts:
    """Return the constants of a problem, those of the optional axes included."""
    words, architecture = words_of(problem, space), problem.architecture
    grouped = [
        k.attention for k in architecture.kinds if isinstance(k.attention, Attention)
    ]
    more = brute_force_axes.More(
        first={
            "cp_style": words.get("cp_style", ["auto"])[0],
            "dispatcher": words.get("dispatcher", ["alltoall"])[0],
        },
        hidden=architecture.hidden,
        mtp=architecture.mtp_layers,
        tied=architecture.tied,
        window=any(k.attention.window is not None for k in architecture.kinds),
        sinks=any(a.sinks for a in grouped),
        formats=frozenset(problem.cluster.device.formats),
    )
    return replace(facts_of(problem, space), more=more)


CHOICES: dict[str, list[str]] = {
    "cp_style": ["p2p", "a2a", "all-gather", "hierarchical"],
    "precision": ["bf16", "fp8-delayed", "fp8-tensor", "fp8-block", "mxfp8", "nvfp4"],
    "cross_entropy": ["unfused", "native-fused", "te-fused"],
    "offload": ["none", "optimizer", "activations", "optimizer+activations"],
    "dispatcher": ["allgather", "alltoall", "flex"],
    "instances": ["1", "2", "3", "4"],
    **{name: ["off", "on"] for name in OVERLAPS},
}
KINDS = ["none", "zero-1", "zero-2", "zero-3", "megatron-fsdp", "fsdp2", "hsdp"]
WHOLE = ["full", "full-uniform-2", "full-uniform-3", "full-block-1", "full-block-2"]


@st.composite
def wide_problems(draw: st.DrawFn) -> Drawn:
    """Draw a problem whose space lists up to four optional axes, and wider ones."""
    problem, space = draw(problems())
    device = problem.cluster.device
    formats = draw(st.sets(st.sampled_from(["fp16", "fp8", "mxfp8", "nvfp4"])))
    peaks = {**device.peak_flops, **dict.fromkeys(sorted(formats), 1e14)}
    cluster = replace(problem.cluster, device=replace(device, peak_flops=peaks))
    problem = replace(
        problem,
        cluster=cluster,
        architecture=replace(
            problem.architecture, mtp_layers=draw(st.sampled_from([0, 0, 1, 2]))
        ),
    )
    for name in ("tp", "cp", "mbs", "vpp"):
        codes = space.axes[name]
        assert isinstance(codes, tuple)
        space = space.restrict(name, (codes[0], codes[-1]))
    if draw(st.booleans()):
        space = space.restrict("cp", (1, draw(st.sampled_from([2, 4, 8]))))
    names = sorted(CHOICES)
    for name in draw(st.sets(st.sampled_from(names), min_size=1, max_size=4)):
        listed = draw(st.sets(st.sampled_from(CHOICES[name]), min_size=1, max_size=3))
        space = space.restrict(name, tuple(axis_code(name, v) for v in listed))
    kinds = draw(st.sets(st.sampled_from(KINDS), min_size=1, max_size=3))
    space = space.restrict("sharding", tuple(axis_code("sharding", k) for k in kinds))
    whole = draw(st.sets(st.sampled_from(WHOLE), max_size=2))
    old = space.axes["recompute"]
    assert isinstance(old, tuple)
    space = space.restrict("recompute", (*old[:2], *map(recompute_code, whole)))
    if draw(st.integers(0, 3)) == 0:
        batch = problem.training.global_batch
        space = space.restrict("gbs", (batch, batch + 1, 2 * batch))
    return problem, space


def names_of(space: Space) -> tuple[str, ...]:
    """Return the axes of a row: those that a space lists, and the derived ones."""
    return (*(n for n in space.axes if n != "gbs"), "dp", "edp", "m")


def brute_rows(problem: Problem, space: Space) -> set[tuple[int, ...]]:
    """Return what the brute force finds, in codes."""
    names = names_of(space)
    found = brute_force.legal(words_of(problem, space), wide_facts(problem, space))
    return {tuple(code(n, p[n]) for n in names) for p in found}


assert set(CHOICES) | {"gbs"} == set(OPTIONAL)
