"""Feasible sets and peaks equal a brute force from the pages' own sentences.

Legality comes from ``oracles.brute_force``, bytes from ``oracles.memory``; neither
knows the solver, the expressions or the memory model. The device of a drawn problem
gets as many bytes as one of its configurations needs, or one byte less, so that a
single wrong byte changes the set.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracles import brute_force, memory
from strategies import plain_problem, problems
from test_legal_sets import facts_of, rows_of

from shardproof.models.architecture import (
    Architecture,
    Attention,
    DenseFFN,
    Layer,
    MoE,
)
from shardproof.models.catalogue import cluster, model
from shardproof.models.layout import (
    RECOMPUTE_MODULES,
    SCHEDULES,
    SHARDINGS,
    SPLITS,
    Layout,
    recompute_code,
    recompute_label,
)
from shardproof.models.problem import Problem, Training
from shardproof.models.units import Bytes
from shardproof.solver.domains import bind
from shardproof.solver.feasible import NAMES, Engine, enumerate_feasible
from shardproof.solver.peaks import Peaks
from shardproof.solver.single import rank_peaks
from shardproof.solver.space import Space, load_space
from shardproof.solver.vector import legal_points

Row = tuple[int, ...]
Drawn = tuple[Problem, Space]
SIZES = ("tp", "pp", "vpp", "cp", "ep", "etp", "mbs", "dp", "edp", "m")
NAMED = {"schedule": SCHEDULES, "split": SPLITS, "sharding": SHARDINGS}


def modules_of(code: int) -> frozenset[str]:
    return frozenset(recompute_label(code).split("+")) - {"none"}


def words_of(problem: Problem, space: Space) -> dict[str, list[object]]:
    """Give the brute force the axes in words."""
    words: dict[str, list[object]] = {}
    for name in space.axes:
        codes = space.values(name, problem)
        words[name] = [NAMED[name][c] if name in NAMED else c for c in codes]
    codes = space.values("recompute", problem)
    sets = [modules_of(code) for code in codes]
    words["recompute"] = ["full" if s == {"full"} else s for s in sets]
    return words


def row_of(found: dict[str, Any]) -> Row:
    """Write what the brute force found in the codes of the product."""
    chosen = found["recompute"]
    label = chosen if isinstance(chosen, str) else "+".join(chosen) or "none"
    coded = {axis: labels.index(str(found[axis])) for axis, labels in NAMED.items()}
    coded["recompute"] = recompute_code(label)
    return tuple(int(coded.get(n, found[n])) for n in NAMES)


def peaks_of(problem: Problem, row: Row) -> list[int]:
    """Ask the brute force for the peak of every pipeline rank."""
    point = dict(zip(NAMES, row, strict=True))
    config = memory.Config(
        **{name: point[name] for name in SIZES},
        sp=bool(point["sp"]),
        split=SPLITS[point["split"]],
        recompute=modules_of(point["recompute"]),
        stage=point["sharding"],
    )
    run = memory.Run(problem.architecture, problem.training, config)
    return memory.peaks_of_ranks(run)


def needs(problem: Problem, space: Space) -> dict[Row, int]:
    """Every legal configuration with the bytes that its fullest rank needs."""
    words = words_of(problem, space)
    rows = map(row_of, brute_force.legal(words, facts_of(problem, space)))
    return {row: max(peaks_of(problem, row)) for row in rows}


def with_device_of(problem: Problem, size: int) -> Problem:
    device = replace(problem.cluster.device, hbm_bytes=Bytes(size))
    return replace(problem, cluster=replace(problem.cluster, device=device))


def thin(space: Space) -> Space:
    """Leave two values of some axes, as plain loops visit every raw point."""
    for name in ("cp", "etp", "mbs"):
        codes = space.axes[name]
        assert isinstance(codes, tuple)
        space = space.restrict(name, (codes[0], codes[-1]))
    return space


def check(problem: Problem, space: Space, rank: float, less: int, by: Engine) -> None:
    """Compare sets on a device as large as the configuration of one rank needs."""
    space = thin(space)
    need = needs(problem, space)
    assume(need)
    ordered = sorted(need.values())
    limit = ordered[int(rank * (len(ordered) - 1))] - less
    sized = with_device_of(problem, limit)
    found = enumerate_feasible(sized, space, engine=by)
    expected = {row for row, size in need.items() if size <= limit}
    assert rows_of(dict(found.columns)) == expected
    assert found.count == len(expected)
    assert found.legal_count == len(need)


ANYWHERE = st.floats(0, 1)
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much]


@given(problems(), ANYWHERE, st.integers(0, 1))
@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
def test_arrays_fit_what_the_sentences_fit(
    drawn: Drawn, rank: float, less: int
) -> None:
    check(*drawn, rank, less, "vector")


@given(problems(), ANYWHERE, st.integers(0, 1))
@settings(max_examples=15, deadline=None, suppress_health_check=SLOW)
def test_cp_sat_fits_what_the_sentences_fit(
    drawn: Drawn, rank: float, less: int
) -> None:
    check(*drawn, rank, less, "cpsat")


@dataclass(frozen=True)
class Choices:
    """Draws that change what the shared strategies leave as it is."""

    draw: st.DrawFn

    def one(self, *values: object) -> Any:
        return self.draw(st.sampled_from(values))

    def changed(self, item: Any, **values: tuple[object, ...]) -> Any:
        drawn = {name: self.one(*options) for name, options in values.items()}
        return replace(item, **drawn)


def other_layer(choices: Choices, layer: Layer) -> Layer:
    both = (False, True)
    attention, block = layer.attention, layer.feed_forward
    if isinstance(attention, Attention):
        attention = choices.changed(
            attention, qk_norm=("none", "head", "full"), out_bias=both, sinks=both
        )
    if isinstance(block, DenseFFN):
        block = choices.changed(block, bias=both)
    else:
        assert isinstance(block, MoE)
        block = choices.changed(
            block,
            gated=both,
            bias=both,
            shared_gate=both,
            router_bias=both,
            score_bias=both,
            scoring=("softmax", "sigmoid"),
        )
    norms = choices.one(1, 2, 4)
    return replace(layer, attention=attention, feed_forward=block, norms=norms)


def other_architecture(choices: Choices, architecture: Architecture) -> Architecture:
    both = (False, True)
    kinds = {kind: other_layer(choices, kind) for kind in architecture.kinds}
    layers = tuple(kinds[layer] for layer in architecture.layers)
    varied: Architecture = choices.changed(
        replace(architecture, layers=layers, max_positions=2048),
        mtp_layers=(0, 0, 1, 2),
        norm_bias=both,
        position=("rope", "learned", "alibi", "none"),
        embedding_norm=both,
        final_norm=(True, True, False),
        head_bias=both,
    )
    return varied


@st.composite
def other_problems(draw: st.DrawFn) -> Drawn:
    """Problems with every field of a model, recipe, loss and module varied."""
    problem, space = draw(problems())
    choices = Choices(draw)
    training = choices.changed(
        problem.training,
        optimizer=tuple(memory.RECIPES),
        cross_entropy=("unfused", "native-fused", "te-fused"),
        dropout=(False, True),
    )
    modules = st.sets(st.sampled_from(RECOMPUTE_MODULES), min_size=1)
    codes = {recompute_code("+".join(draw(modules))) for _ in range(3)}
    space = space.restrict("recompute", (0, *codes, recompute_code("full")))
    space = space.restrict("sharding", (0, 1, 2, 3))
    architecture = other_architecture(choices, problem.architecture)
    return replace(problem, architecture=architecture, training=training), space


@given(other_problems(), st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None, suppress_health_check=SLOW)
def test_every_rank_peaks_where_the_sentences_say(drawn: Drawn, random: Random) -> None:
    problem, space = drawn
    domains = bind(problem, space)
    columns = legal_points(domains).columns()
    count = len(columns["tp"])
    assume(count)
    peaks = Peaks(domains)
    for index in random.sample(range(count), min(count, 10)):
        point = {name: int(columns[name][index]) for name in NAMES}
        # Rules of this dialect exclude stages 2 and 3; memory knows them.
        point["sharding"] = random.choice((0, 1, 2, 3))
        row = tuple(point[name] for name in NAMES)
        found = rank_peaks(domains, Layout.from_point(point), peaks)
        assert list(found) == peaks_of(problem, row)


@pytest.mark.parametrize("widths", [(512, 8192), (8192, 512), (512, 8192, 512)])
@pytest.mark.parametrize("m", [4, 8, 12])
def test_unequal_chunks_peak_when_the_walk_says(widths: Row, m: int) -> None:
    """Chunks of unlike layers peak before or after warm-up, by which is first."""
    problem, space = plain_problem(nodes=2, global_batch=m)
    plain = problem.architecture.layers[0]
    wide = [replace(plain, feed_forward=DenseFFN(ffn=w, gated=True)) for w in widths]
    layers = tuple(layer for layer in wide for _ in range(4))
    architecture = replace(problem.architecture, layers=layers, vocab=128)
    problem = replace(problem, architecture=architecture)
    sizes = {n: 1 for n in ("tp", "cp", "ep", "etp", "mbs", "dp")} | {"pp": 4, "m": m}
    codes = {"sp": 0, "schedule": 1, "split": 0, "recompute": 0, "sharding": 0}
    layout = Layout(**sizes, **codes, vpp=len(widths), edp=1)
    row = tuple(layout.point()[name] for name in NAMES)
    assert list(rank_peaks(bind(problem, space), layout)) == peaks_of(problem, row)


def llama_8b() -> Problem:
    return Problem(
        architecture=model("llama-3.1-8b"),
        cluster=cluster("1x8:a100-40"),
        training=Training(seq_len=8192, global_batch=64),
    )


def compare_real_case(problem: Problem, space: Space) -> Iterator[int]:
    need = needs(problem, space)
    limit = problem.cluster.device.hbm_bytes
    expected = {row for row, size in need.items() if size <= limit}
    for engine in ("vector", "cpsat"):
        found = enumerate_feasible(problem, space, engine=engine)
        assert rows_of(dict(found.columns)) == expected
        assert found.count == len(expected)
        yield found.count


def test_llama_8b_fits_where_the_sentences_say() -> None:
    space = load_space().restrict("etp", (1,)).restrict("mbs", (1, 4))
    chosen = tuple(map(recompute_code, ("none", "full")))
    space = space.restrict("recompute", chosen).restrict("vpp", (1, 2, 4))
    for count in compare_real_case(llama_8b(), space):
        assert count > 0


@pytest.mark.slow
def test_llama_8b_fits_where_the_sentences_say_on_the_whole_space() -> None:
    for count in compare_real_case(llama_8b(), load_space()):
        assert count > 0
