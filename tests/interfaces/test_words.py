"""What a person reads: rows, bands, the certificate, the explanation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interface_samples import ANSWER, CERTIFICATE, INFEASIBLE, LAYOUT, PROBLEM

from shardproof.interfaces import words
from shardproof.interfaces.table import Column, Table
from shardproof.solver.answer import Correction


def test_a_row_shows_every_figure() -> None:
    lines = words.choices(ANSWER.answers, PROBLEM).plain().splitlines()
    assert lines[0].split()[:13] == list(words.SHOWN)
    assert "peak GiB of 64.00" in lines[0]
    # 32 sequences of 1,024 tokens in 2 s on 16 devices: 1,024 tokens/s/GPU
    assert lines[1].split()[13:] == [
        "32.00",
        "2.00",
        "s",
        "±30%",
        "1,024",
        "45.6%",
        "12.5%",
    ]
    assert len(lines) == 3


def test_uneven_bands_show_both_sides() -> None:
    assert words.spread(2.0, (1.6, 2.2)) == "-20%/+10%"
    assert words.spread(2.0, (1.8, 2.2)) == "±10%"


def test_the_certificate_names_what_was_proven() -> None:
    text = words.certificate(ANSWER)
    for said in ("complete", "56,789", "1,234", "default@1", "megatron@0.16"):
        assert said in text
    assert "uncalibrated" in text
    assert "±30%" in text


def test_a_calibrated_profile_is_not_called_uncalibrated() -> None:
    proof = replace(CERTIFICATE, calibrated=True)
    assert "uncalibrated" not in words.certificate(replace(ANSWER, certificate=proof))


def test_a_gap_is_stated() -> None:
    proof = replace(CERTIFICATE, status="bounded", bound=1.5, gap=0.25)
    text = words.certificate(replace(ANSWER, certificate=proof))
    assert "not proven optimal" in text
    assert "1.50 s (gap 25.00%)" in text


def test_the_explanation_says_rules_bytes_and_ways_out() -> None:
    text = words.explanation(INFEASIBLE)
    assert "none of the 77 configurations" in text
    assert "memory: the peak is at most 64 GiB; got 65 GiB" in text
    assert "1,073,741,824 bytes (1.00 GiB)" in text
    assert "1.00 GiB more memory on every device: tp=2 pp=2" in text
    assert "without kv-tp and without heads-tp" in text


def test_no_memory_clash_no_bytes() -> None:
    text = words.explanation(replace(INFEASIBLE, missing_bytes=None, legal_count=0))
    assert "Missing" not in text
    assert "there is no configuration" in text


def test_the_question_names_the_pins() -> None:
    assert words.question(PROBLEM).endswith("megatron@0.16, tp=2")


CELLS = st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=12)
TABLES = st.integers(1, 4).flatmap(
    lambda n: st.builds(
        Table,
        st.lists(
            st.builds(Column, CELLS, st.sampled_from(["left", "right"])),
            min_size=n,
            max_size=n,
        ).map(tuple),
        st.lists(
            st.lists(CELLS, min_size=n, max_size=n).map(tuple), min_size=1, max_size=5
        ).map(tuple),
    )
)


@given(TABLES)
def test_plain_tables_keep_every_cell_in_order(table: Table) -> None:
    """Tests that splitting a line at the gaps gives back the row."""
    titles = tuple(c.title for c in table.columns)
    lines = table.plain().splitlines()
    assert len(lines) == len(table.rows) + 1
    for line, row in zip(lines, (titles, *table.rows), strict=True):
        assert line.split() == list(row)


@given(TABLES, st.integers(1, 60))
def test_narrowing_loses_nothing(table: Table, width: int) -> None:
    """Tests that a column is shown or its one value is said below."""
    narrow, said = table.narrowed(width)
    dropped = [c for c in table.columns if c not in narrow.columns]
    for column in dropped:
        cells = {row[table.columns.index(column)] for row in table.rows}
        assert len(cells) == 1
        assert f"{column.title} {cells.pop()}" in said
    assert len(narrow.rows) == len(table.rows)


def test_enough_nodes_are_devices_too() -> None:
    text = words.explanation(INFEASIBLE, 4)
    assert "With 4 nodes (32 devices) some configuration fits" in text
    assert "fits; with half" not in words.explanation(INFEASIBLE)


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (18.0, "18.0 s"),
        (9.994, "9.99 s"),
        (9.996, "10.0 s"),
        (1234.5, "1,234 s"),
        (0.0869, "86.9 ms"),
        (2.5e-9, "0.00 us"),
    ],
)
def test_times_have_three_digits(time: float, text: str) -> None:
    assert words.seconds(time) == text


def test_lifting_the_world_size_is_said_in_devices() -> None:
    """Tests a witness of tp 2, pp 2, dp 4: 16 devices."""
    way = Correction(rules=("world-dense",), missing_bytes=0, witness=LAYOUT)
    assert words.correction(way).startswith("on 16 devices: tp=2 pp=2")


@given(TABLES, st.integers(20, 60))
def test_stacked_rows_keep_every_cell(table: Table, width: int) -> None:
    """Tests that a table too wide for any line loses no word when stacked."""
    said = table.stacked(width).replace("\n", " ")
    for row in table.rows:
        for cell in row:
            assert "".join(cell.split()) in "".join(said.split())


def test_a_single_layout_is_called_one() -> None:
    illegal = replace(INFEASIBLE, space="layout@1", legal_count=0, missing_bytes=None)
    text = words.explanation(illegal)
    assert "megatron@0.16 does not accept the layout" in text
    assert "any one of these" not in text
    too_large = replace(INFEASIBLE, space="layout@1", legal_count=1)
    assert "is legal and does not fit" in words.explanation(too_large)


def test_borrowed_memory_is_admitted() -> None:
    other = replace(PROBLEM, dialect="torchtitan@0.3")
    assert "Memory and times are Megatron's" in words.certificate(
        replace(ANSWER, problem=other)
    )
    assert "Megatron's" not in words.certificate(ANSWER)
