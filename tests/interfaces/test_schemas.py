"""Every --json document is what its committed schema says."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from shardproof.interfaces.cli import main

FOLDER = files("shardproof.interfaces").joinpath("schema")
SCHEMAS: dict[str, Any] = {
    path.name.removesuffix("-v1.json"): json.loads(path.read_text("utf-8"))
    for path in FOLDER.iterdir()
}
REGISTRY: Registry[Any] = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()
)
ASK = (
    "llama-3.1-8b --cluster 1x8:a100-40 --seq-len 8192 --global-batch 64 "
    "--pin tp=4 --pin pp=2 --json"
)
COMMANDS = {
    f"plan {ASK}": ("answer", 0),
    f"plan {ASK} --pin mbs=8 --pin recompute=none": ("answer", 1),
    f"plan {ASK} --objective step-time": ("optimum", 0),
    f"project {ASK}": ("answer", 0),
    f"project {ASK} --pin ep=2": ("answer", 1),
    f"memory {ASK}": ("memory", 0),
    f"memory {ASK} --pin mbs=8": ("memory", 1),
    f"enumerate {ASK}": ("feasible-set", 0),
    f"enumerate {ASK} --rules-only --top 0": ("feasible-set", 0),
    f"explain {ASK} --pin mbs=8 --pin recompute=none --check": ("explanation", 1),
    f"explain {ASK}": ("explanation", 0),
    f"explain {ASK} --why tp=4,pp=3,mbs=8": ("explanation", 1),
    f"pareto {ASK}": ("front", 0),
    f"pareto {ASK} --objective step-time --objective gpus --sizes": ("front", 0),
    f"pareto {ASK} --pin mbs=8 --pin recompute=none": ("front", 1),
    f"robust {ASK} --draws 5": ("robust", 0),
    f"robust {ASK} --pin mbs=8 --pin recompute=none": ("answer", 1),
    f"book {ASK} --nodes 1,2 --batch-tolerance 0.02": ("book", 0),
    f"whatif {ASK} --vary device.hbm_bytes=20GiB,40GiB --target 1": ("whatif", 0),
    "rules --json": ("rules", 0),
    "rules --dialect torchtitan --json": ("rules", 0),
    "catalogue --json": ("catalogue", 0),
    "catalogue mixtral-8x22b --json": ("catalogue", 0),
    "catalogue mi355x --json": ("catalogue", 0),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_is_a_schema_and_refuses_nothing_at_all(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert not Draft202012Validator(SCHEMAS[name], registry=REGISTRY).is_valid({})


@pytest.mark.parametrize("words", COMMANDS)
def test_documents(capsys: pytest.CaptureFixture[str], words: str) -> None:
    name, code = COMMANDS[words]
    assert main(words.split()) == code
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert shown.err == ""
    Draft202012Validator(SCHEMAS[name], registry=REGISTRY).validate(document)


def test_every_schema_is_tested() -> None:
    # Their commands take files: see test_verify and test_sweeps.
    elsewhere = {"verification", "sweep"}
    assert {name for name, _ in COMMANDS.values()} == set(SCHEMAS) - elsewhere


def test_rows_are_the_whole_set_where_it_is_small(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(f"enumerate {ASK} --top 100000".split()) == 0
    found = json.loads(capsys.readouterr().out)
    rows = [tuple(row["layout"].values()) for row in found["rows"]]
    assert len(rows) == len(set(rows)) == found["count"]
    limit = found["problem"]["cluster"]["device"]["hbm_bytes"]
    assert all(row["peak_bytes"] <= limit for row in found["rows"])
    assert all(row["layout"]["tp"] == 4 for row in found["rows"])
