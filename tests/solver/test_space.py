"""A space is a named, versioned file; its hash says what it lists."""

from pathlib import Path

import pytest
from hypothesis import given
from strategies import plain_problem, problems

from shardproof.models.errors import InputError
from shardproof.models.layout import DECIDED, axis_code
from shardproof.models.problem import Problem
from shardproof.solver.domains import bind
from shardproof.solver.space import Space, load_space


def test_the_default_space_lists_every_axis() -> None:
    space = load_space()
    assert set(space.axes) == set(DECIDED)
    assert space.label == "default@1"


def test_the_hash_follows_the_values_not_the_name() -> None:
    space = load_space()
    renamed = Space(name="x", version=9, axes=dict(space.axes), advice=space.advice)
    assert renamed.content_hash == space.content_hash
    assert space.restrict("vpp", (1, 2)).content_hash != space.content_hash
    without = Space(name="x", version=9, axes=dict(space.axes), advice=())
    assert without.content_hash != space.content_hash


@given(problems())
def test_divisors_divide(drawn: tuple[Problem, Space]) -> None:
    problem, _ = drawn
    default = load_space()
    world = problem.cluster.world_size
    assert default.values("tp", problem) == tuple(
        d for d in range(1, 65) if world % d == 0
    )
    moe = problem.architecture.moe
    experts = moe.experts if moe else 1
    assert max(default.values("ep", problem)) <= experts


@given(problems())
def test_derived_values_multiply_back(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    values = bind(problem, space).values
    assert all(problem.cluster.world_size % d == 0 for d in values["dp"])
    assert all(problem.training.global_batch % m == 0 for m in values["m"])


def _write(path: Path, text: str) -> str:
    target = path / "space.yaml"
    target.write_text(text)
    return str(target)


def test_a_users_file_is_read(tmp_path: Path) -> None:
    lines = [
        f"  {n}: {['off'] if n == 'sp' else ['none'] if n == 'recompute' else [1]}"
        for n in DECIDED
        if n not in ("schedule", "split", "sharding")
    ]
    text = "\n".join(
        [
            "name: mine",
            "version: 3",
            "axes:",
            *lines,
            "  schedule: [1f1b]",
            "  split: [even, balanced]",
            "  sharding: [zero-1]",
        ]
    )
    space = load_space(_write(tmp_path, text))
    assert space.label == "mine@3"
    assert space.axes["split"] == (0, 1)
    assert space.axes["sharding"] == (axis_code("sharding", "zero-1"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\naxes: {tp: [1]}", "must list every axis"),
        ("name: x\naxes: {tpp: [1]}", "unknown axis 'tpp'; did you mean"),
        ("name: x\nbogus: 1\naxes: {tp: [1]}", "has name, version, axes and advice"),
        ("name: x\naxes: {tp: [0]}", "tp must be a whole number of at least 1"),
        ("name: x\naxes: {tp: []}", "axis tp of a space is a list"),
        ("name: x\naxes: {tp: {range: [1]}}", "axis tp of a space is a list"),
        ("name: x\naxes: {sp: {range: [1, 2]}}", "axis sp of a space is a list"),
        ("name: x\naxes: {tp: {range: [1, 99999]}}", "axis tp of a space is"),
        ("name: x\naxes: {recompute: [mpl]}", "unknown recompute choice 'mpl'"),
        ("[1, 2]", "must be a mapping"),
        ("{", "is not YAML"),
        ("name: x\nversion: -1\naxes: {}", "must be a whole number"),
    ],
)
def test_a_bad_file_is_one_clear_sentence(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load_space(_write(tmp_path, text))


def test_an_unknown_space_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="unknown space 'defualt'; did you mean"):
        load_space("defualt")


@given(problems())
def test_a_pin_outside_its_axis_is_refused(drawn: tuple[Problem, Space]) -> None:
    problem, space = drawn
    pinned = Problem(
        architecture=problem.architecture,
        cluster=problem.cluster,
        training=problem.training,
        pins={"tp": (7,)},
    )
    with pytest.raises(InputError, match="got tp=7; tp has 1"):
        bind(pinned, space)


def test_a_batch_that_nothing_divides_names_the_nearest() -> None:
    from dataclasses import replace

    problem, space = plain_problem(nodes=1, gpus_per_node=8, global_batch=8)
    odd = replace(problem, training=replace(problem.training, global_batch=7))
    only_dp = space.restrict("pp", (1,)).restrict("cp", (1,)).restrict("tp", (1,))
    with pytest.raises(InputError, match="divides; 8 would do"):
        bind(odd, only_dp)


def test_advice_that_no_rule_gives_is_refused() -> None:
    problem, space = plain_problem()
    wrong = Space(name="x", version=1, axes=dict(space.axes), advice=("tp-nod",))
    with pytest.raises(InputError, match="space x 'tp-nod'; did you mean tp-node"):
        bind(problem, wrong)
