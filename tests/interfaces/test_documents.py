"""The JSON documents are what the committed schema says."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import pytest
from interface_samples import ANSWER, INFEASIBLE, LAYOUT, PROBLEM, choice
from jsonschema import Draft202012Validator, ValidationError

from shardproof.interfaces import document
from shardproof.interfaces.files import to_json
from shardproof.models.layout import DECIDED, DERIVED
from shardproof.models.parameters import parameter_count

SCHEMA = json.loads(
    files("shardproof.interfaces").joinpath("schema", "answer-v1.json").read_text()
)
VALIDATOR = Draft202012Validator(SCHEMA)


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("value", [ANSWER, INFEASIBLE], ids=["answer", "infeasible"])
def test_documents_are_valid_after_a_round_trip(value: object) -> None:
    text = to_json(document.answer(value))  # type: ignore[arg-type]
    VALIDATOR.validate(json.loads(text))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "shardproof/answer@2"),
        (("answers",), []),
        (("answers", 0, "layout", "tp"), 0),
        (("answers", 0, "memory", "peak_bytes"), 1.5),
        (("answers", 0, "projection", "band"), [1.0]),
        (("answers", 0, "projection", "mfu"), 45.6),
        (("certificate", "status"), "best"),
        (("certificate", "space_hash"), "ab"),
    ],
)
def test_the_schema_refuses_what_it_should(
    path: tuple[str | int, ...], value: object
) -> None:
    """Tests that one wrong value makes a valid document invalid."""
    broken = json.loads(to_json(document.answer(ANSWER)))
    at = broken
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(ValidationError):
        VALIDATOR.validate(broken)


def test_a_layout_names_every_axis() -> None:
    layout = document.choice(choice(2.0))["layout"]
    assert set(layout) == {*DECIDED, *DERIVED}
    assert layout["sp"] is True
    assert layout["sharding"] == "zero-1"


def test_the_problem_is_whole() -> None:
    """Tests that every layer and every pin can be read back from the document."""
    found = document.problem(PROBLEM)
    assert found["parameters"] == parameter_count(PROBLEM.architecture)
    assert found["pins"] == {"tp": ["2"]}
    shape = found["architecture"]
    assert len(shape["layers"]) == PROBLEM.architecture.num_layers
    assert shape["kinds"][0]["attention"]["kv_heads"] == 4
    assert found["cluster"]["device"]["hbm_bytes"] == 64 * 2**30


def test_infeasible_keeps_every_correction() -> None:
    found = document.answer(INFEASIBLE)["infeasible"]
    assert [c["rules"] for c in found["corrections"]] == [
        ["memory"],
        ["kv-tp", "heads-tp"],
    ]
    assert found["nearest"] == LAYOUT.labels()


def test_numbers_that_are_not_finite_are_refused() -> None:
    bad = replace(ANSWER, answers=(choice(float("inf")),))
    with pytest.raises(ValueError, match="JSON compliant"):
        to_json(document.answer(bad))
