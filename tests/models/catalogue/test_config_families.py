"""Real configurations read as the entries that were written from them by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from shardproof.models.catalogue import architecture, model
from shardproof.models.catalogue.huggingface.families import FAMILIES

CASES = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted((Path(__file__).parent / "data").glob("*.json"))
}


def test_every_family_has_a_real_configuration():
    assert {c["config"]["model_type"] for c in CASES.values()} == set(FAMILIES)


@pytest.mark.parametrize("name", CASES)
def test_a_configuration_reads_as_its_entry(name, tmp_path):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CASES[name]["config"]), "utf-8")
    read = model(str(folder))
    assert read.name == name
    entry = architecture(CASES[name]["catalogue"])
    assert replace(read, source="") == replace(entry, source="")
    assert model(str(folder / "config.json")) == read
