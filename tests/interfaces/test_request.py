"""From what a user writes to a problem and a space."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interface_samples import ARCHITECTURE, CLUSTER

from shardproof.interfaces.request import (
    Request,
    assignment,
    code_of,
    rows,
    trim,
)
from shardproof.models.errors import InputError
from shardproof.models.layout import RECOMPUTE_FULL


def request(**changes: object) -> Request:
    given: dict[str, object] = {
        "model": ARCHITECTURE,
        "cluster": CLUSTER,
        "seq_len": 1024,
        "global_batch": 32,
    }
    return Request(**{**given, **changes})  # type: ignore[arg-type]


@given(st.integers(1, 64), st.integers(1, 16), st.integers(1, 2000))
def test_trimming_keeps_whole_nodes(nodes: int, size: int, most: int) -> None:
    from dataclasses import replace

    whole = replace(CLUSTER, nodes=nodes, gpus_per_node=size)
    kept = trim(whole, most)
    assert 1 <= kept.world_size <= min(most, whole.world_size)
    assert kept.gpus_per_node == size or kept.nodes == 1
    # Another node, or another device of a part of a node, would be too many.
    if kept != whole:
        step = size if kept.gpus_per_node == size else 1
        assert kept.world_size + step > most


@pytest.mark.parametrize("most", [0, -1, -(10**30)])
def test_trimming_to_nothing_is_refused(most: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        trim(CLUSTER, most)


def test_pins_and_axes_are_codes() -> None:
    asked = request(
        pins={"tp": 2, "sp": True, "recompute": "full"},
        axes={"vpp": [1, 2], "mbs": 4, "schedule": ("1f1b",)},
    )
    pins = asked.problem().pins
    assert pins == {"tp": (2,), "sp": (1,), "recompute": (RECOMPUTE_FULL,)}
    space = asked.in_space()
    assert space.axes["vpp"] == (1, 2)
    assert space.axes["mbs"] == (4,)
    assert space.axes["schedule"] == (0,)


def test_numbers_of_numpy_are_numbers() -> None:
    asked = request(seq_len=np.int64(2048), pins={"tp": np.int32(2)})
    assert asked.problem().training.seq_len == 2048
    assert asked.problem().pins == {"tp": (2,)}


@pytest.mark.parametrize("given", [[], None, [None], ["x"], 0, {}])
def test_bad_axes_are_refused(given: object) -> None:
    with pytest.raises(InputError):
        request(axes={"tp": given}).in_space()


def test_a_bare_dialect_means_its_newest_release() -> None:
    named = request(dialect="megatron").problem().dialect
    assert named.startswith("megatron@")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seq_len": 0}, "sequence length"),
        ({"seq_len": True}, "whole number"),
        ({"seq_len": 8.5}, "whole number"),
        ({"global_batch": -3}, "global batch"),
        ({"global_batch": 10**30}, "global batch"),
        ({"dialect": "megatronn"}, "did you mean megatron"),
        ({"dialect": "megatron@9"}, "release"),
        ({"precision": "bf17"}, "did you mean bf16"),
        ({"pins": {"tpp": 1}}, "did you mean"),
        ({"pins": {"dp": 4}}, "follows from the other axes"),
        ({"pins": {"tp": 0}}, "at least 1"),
        ({"pins": {"sp": "maybe"}}, "on or off"),
        ({"max_gpus": 0}, "at least 1"),
        ({"model": ""}, "name or a file"),
        ({"cluster": " "}, "name or a file"),
        ({"model": "a\0b"}, "name or a file"),
        ({"model": None}, "must be text"),
        ({"cluster": 7}, "must be text"),
        ({"dialect": None}, "must be text"),
        ({"optimizer": 3}, "must be text"),
        ({"pins": {"tp": None}}, "at least 1"),
        ({"pins": {"tp": [4]}}, "at least 1"),
    ],
)
def test_bad_values_are_one_sentence(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        request(**changes).problem()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "=", "tp", "tp=", "=8", " = "])
def test_an_assignment_needs_both_sides(text: str) -> None:
    with pytest.raises(InputError, match="AXIS=VALUE"):
        assignment("--pin", text)


def test_an_assignment_is_split_at_the_first_sign() -> None:
    assert assignment("--pin", " TP = 8=9 ") == ("tp", "8=9")


@pytest.mark.parametrize("number", [0, -1, 10**30, True, 2.5])
def test_rows_are_bounded(number: object) -> None:
    with pytest.raises(InputError, match="top"):
        rows(number, least=1)  # type: ignore[arg-type]


@given(st.text(max_size=30))
def test_any_text_is_a_code_or_an_input_error(text: str) -> None:
    for name in ("tp", "sp", "recompute", "schedule", text):
        try:
            assert code_of(name, text) >= 0
        except InputError as error:
            assert str(error)
