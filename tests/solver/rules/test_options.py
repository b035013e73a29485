"""Options, explicit layouts, and what a configuration is read into."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from megatron_cases import DENSE, change

from shardproof.models.dialects.megatron import OPTIONS
from shardproof.models.dialects.megatron_config import read_megatron
from shardproof.models.dialects.option import UNSET, Option
from shardproof.models.dialects.pipeline_layout import PipelineLayout
from shardproof.models.errors import InputError
from shardproof.models.expr import Axis, axes, axis, value
from shardproof.models.layout import DECIDED, DERIVED, Dims
from shardproof.solver.rules import Facts, rules

SET = Option(name="s", kind="set", labels=("a", "b"))
CHOICE = Option(name="c", kind="choice", labels=("none", "a", "b"))


def test_a_choice_is_its_position_and_unknown_names_share_one_code() -> None:
    assert [CHOICE.code(v) for v in (None, "none", "a", "b")] == [0, 0, 1, 2]
    assert CHOICE.code("x") == CHOICE.code("y") == 3
    assert CHOICE.label(2) == "b"
    assert CHOICE.label(3) == "(unknown)"


def test_a_set_is_bits_and_unknown_names_share_one_bit() -> None:
    assert [SET.code(v) for v in (None, [], ["a"], ["b", "a"])] == [0, 0, 1, 3]
    assert SET.code(["x", "y"]) == 4
    assert SET.label(5) == "a+(unknown)"


def test_a_whole_number_is_itself_or_not_given() -> None:
    number = Option(name="n", kind="whole")
    assert number.code(None) == UNSET
    assert number.code(-3) == -3
    assert number.label(UNSET) == "not given"
    with pytest.raises(InputError, match="whole number"):
        number.code(True)


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda o: o.name)
def test_every_label_is_read_back(option: Option) -> None:
    for label in option.labels:
        if label == "auto":
            continue
        value = [label] if option.kind == "set" else label
        assert option.label(option.code(value)) == label
    with pytest.raises(InputError, match=option.name):
        option.code({"a": 1})


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("EtL", ("EtL",)),
        ("E,t*3|t|L", ("Ettt", "t", "L")),
        ("E(tt|)*2m|L", ("Ett", "tt", "m", "L")),
        ("Et*10|(t)*12,L", ("E" + "t" * 10, "t" * 12 + "L")),
        ("E|*3L", ("E", "", "", "L")),
        ("Et*0L", ("EL",)),
        ("E((t)*2)*2L", ("E(t(t))L",)),  # groups do not nest
    ],
)
def test_repeats_are_written_out(text: str, stages: tuple[str, ...]) -> None:
    assert PipelineLayout.parse(text).stages == stages


@given(
    st.lists(st.text("EtmL", max_size=5), min_size=1, max_size=12),
    st.integers(1, 6),
)
def test_a_layout_without_repeats_is_its_stages(stages: list[str], pp: int) -> None:
    layout = PipelineLayout.parse("|".join(stages))
    assert layout.stages == tuple(stages)
    chunks = layout.chunks(pp)
    assert chunks * pp == len(stages) or chunks == 1
    held = [j for j, s in enumerate(stages) if "m" in s]
    last = range((chunks - 1) * pp, len(stages))
    assert layout.mtp_in_last_chunks(pp) == all(j in last for j in held)
    assert layout.mtp_together == (len(held) < 2)


def test_unknown_characters_are_kept_for_the_rule() -> None:
    assert PipelineLayout.parse("Ext|(yL").unknown == "(xy"


def test_the_point_is_megatrons_own_algebra() -> None:
    case = change(DENSE, etp=4, vpp=3, recompute_granularity="full")
    read = read_megatron(
        case["config"],
        case["arch"],
        world=64,
        global_batch=64,
        micro_batch=2,
        seq_len=4096,
    )
    point = read.point
    assert point["dp"] == 64 // (2 * 2 * 2)
    assert point["edp"] == 64 // (4 * 1 * 2)
    assert point["m"] == 64 // (2 * 8)
    assert point["vpp"] == 3
    assert read.options["vpp_given"] == 1


def _facts(**options: object) -> Facts:
    read = read_megatron(
        DENSE["config"] | {"sequence_parallel": False},
        DENSE["arch"],
        world=64,
        global_batch=64,
        micro_batch=1,
        seq_len=4096,
    )
    assert set(read.point) == {*DECIDED, *DERIVED}
    return Facts(
        dims=Dims.of({n: (c,) for n, c in read.point.items()}),
        sizes_given=read.sizes,
        options={**read.options, **options},  # type: ignore[dict-item]
    )


def test_an_option_can_be_an_axis() -> None:
    """A space may list an option: bodies then depend on it, and say the same."""
    names = ("tp_comm_overlap", "overlap_param_gather", "overlap_grad_reduce")
    nodes = {n: axis(Axis(n, (0, 1))) for n in names}
    bodies = [rule.body(_facts(**nodes)) for rule in rules("megatron@0.16")]
    assert {a.name for body in bodies for a in axes(body)} == set(names)
    for codes in product((0, 1), repeat=3):
        point = dict(zip(names, codes, strict=True))
        fixed = [rule.body(_facts(**point)) for rule in rules("megatron@0.16")]
        assert [value(b, point) for b in bodies] == [value(b, {}) for b in fixed]
