"""Amounts and checks of an explanation, held to re-solving by complete enumeration."""

from dataclasses import replace

import pytest
from strategies import plain_problem

from shardproof.models.errors import InputError
from shardproof.models.layout import Layout
from shardproof.models.problem import Problem
from shardproof.solver.answer import Correction, Infeasible
from shardproof.solver.domains import bind
from shardproof.solver.explain import Request, explain_request, lift
from shardproof.solver.explain.remedies import Remedy, applied, remedies
from shardproof.solver.explain.resolve import check
from shardproof.solver.feasible import enumerate_feasible
from shardproof.solver.single import evaluate
from shardproof.solver.space import Space

CASES = [
    {"hbm_bytes": 2**27},
    {"hbm_bytes": 2**28, "pins": {"tp": (1,)}},
    {"pins": {"tp": (4,), "sp": (0,), "vpp": (2,), "pp": (1,)}},
    {"pins": {"split": (1,)}},
]


def asked(case: dict[str, object]) -> tuple[Problem, Space]:
    options = dict(case)
    pins = options.pop("pins", {})
    problem, space = plain_problem(**options)  # type: ignore[arg-type]
    return replace(problem, pins=pins), space


def explained(case: dict[str, object]) -> tuple[Request, Infeasible]:
    request = lift(bind(*asked(case)))
    return request, explain_request(request)


def is_feasible(problem: Problem, space: Space) -> bool:
    return enumerate_feasible(problem, space).count > 0


def found(case: dict[str, object]) -> list[Remedy]:
    return list(remedies(*explained(case)))


@pytest.mark.parametrize("case", CASES)
def test_re_solving_agrees_with_every_statement(case: dict[str, object]) -> None:
    request, value = explained(case)
    checked = check(request, value)
    assert checked.wrong == ()
    least = sum(1 + len(c.rules) for c in value.corrections)
    assert checked.solved == least + sum(1 + len(c) for c in value.conflicts)


def test_a_false_statement_is_found_by_re_solving() -> None:
    request, value = explained(CASES[0])
    (way,) = value.corrections
    assert way.rules == ("memory",)
    for wrong in (way.missing_bytes - 1, way.missing_bytes + 1):
        false = replace(value, corrections=(replace(way, missing_bytes=wrong),))
        assert check(request, false).wrong
    request, value = explained(CASES[2])
    too_much = Correction(
        rules=(*value.corrections[0].rules, "heads-tp"),
        missing_bytes=0,
        witness=value.corrections[0].witness,
    )
    assert check(request, replace(value, corrections=(too_much,))).wrong
    assert check(request, replace(value, conflicts=(("heads-tp",),))).wrong


@pytest.mark.parametrize("case", CASES)
def test_every_change_is_enough(case: dict[str, object]) -> None:
    ways = found(case)
    assert ways
    for way in ways:
        problem, space = applied(way, *asked(case))
        assert is_feasible(problem, space), way.sentence
        assert Layout.from_point(way.witness.point()) in enumerate_feasible(
            problem, space
        )


def test_a_byte_less_is_not_enough() -> None:
    (way,) = [w for w in found(CASES[0]) if w.kind == "hbm"]
    problem, space = asked(CASES[0])
    assert not is_feasible(*applied(way, problem, space, way.amount - 1))
    peak = evaluate(problem, way.witness).memory.peak_bytes
    assert way.amount == peak - problem.cluster.device.hbm_bytes
    assert way.sentence.startswith(f"+{way.amount:,} bytes of HBM on every device")


def test_fewer_nodes_are_not_enough() -> None:
    case = {"hbm_bytes": 2**29, "pins": {"tp": (1,), "pp": (1,)}}
    ways = [w for w in found(case) if w.kind == "nodes"]
    problem, space = asked(case)
    for way in ways:
        assert way.least
        between = range(problem.cluster.nodes + 1, way.amount)
        assert not any(is_feasible(*applied(way, problem, space, n)) for n in between)


def test_a_longer_sequence_does_not_fit() -> None:
    """Tests every multiple up to the length that was asked."""
    problem, space = asked({})
    training = replace(problem.training, seq_len=16384)
    long = replace(problem, training=training)
    limit = replace(problem.cluster.device, hbm_bytes=1_500_000_000)
    long = replace(long, cluster=replace(long.cluster, device=limit))
    assert not is_feasible(long, space)
    request = lift(bind(long, space))
    ways = remedies(request, explain_request(request))
    (way,) = [w for w in ways if w.kind == "sequence"]
    assert way.amount % 1024 == 0
    assert is_feasible(*applied(way, long, space))
    longer = range(way.amount + 1024, 16384, 1024)
    assert len(longer) > 1
    assert not any(is_feasible(*applied(way, long, space, n)) for n in longer)
    assert way.sentence == f"sequence {way.amount:,} instead of 16,384"


def test_the_nearest_batches_that_divide() -> None:
    problem, space = asked({"pins": {"tp": (1,), "pp": (1,), "cp": (1,), "mbs": (1,)}})
    odd = replace(
        problem,
        training=replace(problem.training, global_batch=problem.cluster.world_size),
        pins={**problem.pins, "pp": (2,), "vpp": (2,), "schedule": (1,)},
    )
    # One micro-batch for each of two ranks is too few for two chunks.
    odd = replace(
        odd, training=replace(odd.training, global_batch=odd.training.global_batch // 2)
    )
    assert not is_feasible(odd, space)
    request = lift(bind(odd, space))
    ways = [w for w in remedies(request, explain_request(request)) if w.kind == "batch"]
    (way,) = ways
    between = range(odd.training.global_batch + 1, way.amount)
    assert is_feasible(*applied(way, odd, space))
    assert not any(is_feasible_or_refused(way, odd, space, n) for n in between)


def is_feasible_or_refused(way: Remedy, problem: Problem, space: Space, n: int) -> bool:
    try:
        return is_feasible(*applied(way, problem, space, n))
    except InputError:
        return False


def test_uneven_stages_are_offered_where_the_space_has_none() -> None:
    problem, space = asked({"pins": {"pp": (4,), "vpp": (1,)}})
    model = problem.architecture
    layers = (model.layers[0],) * 6
    uneven = replace(problem, architecture=replace(model, layers=layers))
    even = space.restrict("split", (0,))
    assert not is_feasible(uneven, even)
    request = lift(bind(uneven, even))
    ways = remedies(request, explain_request(request))
    (way,) = [w for w in ways if w.kind == "stages"]
    assert way.sentence == "allow uneven stages: split=balanced"
    assert is_feasible(*applied(way, uneven, even))


def test_every_value_that_will_do_is_listed() -> None:
    problem, space = asked(CASES[2])
    ways = [w for w in found(CASES[2]) if w.kind == "values" and w.amount == 1]
    assert len(ways) > 1
    for way in ways:
        ((name, codes),) = way.values
        pins = {n: c for n, c in problem.pins.items() if n != name}
        for code in bind(replace(problem, pins=pins), space).values[name]:
            one = replace(problem, pins={**pins, name: (code,)})
            assert is_feasible(one, space) == (code in codes)
