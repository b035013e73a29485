"""YAML of users: read back equal, or refused in one sentence; the user's folder."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import architectures, clusters

from shardproof.models.catalogue import (
    add,
    architecture,
    cluster,
    device,
    fabric,
    home,
    model,
    names,
    to_yaml,
)
from shardproof.models.catalogue.architectures import read_architecture
from shardproof.models.catalogue.machines import read_device, read_fabric
from shardproof.models.catalogue.text import parse_yaml
from shardproof.models.errors import InputError


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    """Give each test a user's folder of its own."""
    monkeypatch.setenv("SHARDPROOF_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize("name", names("models"))
def test_an_exported_model_reads_back_equal(name, tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text(to_yaml(architecture(name)), "utf-8")
    assert model(str(path)) == architecture(name)


@given(arch=architectures())
def test_any_model_reads_back_equal(arch):
    assert read_architecture(parse_yaml(to_yaml(arch), "x"), "x") == arch


@pytest.mark.parametrize("name", names("devices"))
def test_exported_machines_read_back_equal(name, tmp_path):
    found = cluster(f"2x4:{name}")
    assert read_device(parse_yaml(to_yaml(found.device), "x"), "x") == found.device
    assert read_fabric(parse_yaml(to_yaml(found.fabric), "x"), "x") == found.fabric
    path = tmp_path / "cluster.yaml"
    path.write_text(to_yaml(found), "utf-8")
    assert cluster(str(path)) == found


@given(found=clusters())
def test_any_cluster_reads_back_equal(found, tmp_path_factory):
    path = tmp_path_factory.mktemp("clusters") / "cluster.yaml"
    path.write_text(to_yaml(found), "utf-8")
    assert cluster(str(path)) == found


def edited(tmp_path, entry, **changes):
    path = tmp_path / "entry.yaml"
    path.write_text(to_yaml(replace(entry, **changes)), "utf-8")
    return path


def test_an_edited_copy_of_a_device_is_a_new_device(tmp_path):
    path = edited(tmp_path, device("h100"), name="h100-slow", hbm_bandwidth=2e12)
    written = add(path)
    assert written.is_relative_to(home())
    assert "h100-slow" in names("devices")
    found = cluster("8x8:h100-slow")
    assert found.device.hbm_bandwidth == 2e12
    assert found.fabric == cluster("8x8:h100").fabric


def test_an_added_model_and_cluster_are_found_by_name(tmp_path):
    add(edited(tmp_path, architecture("llama-3.1-8b"), name="ours"))
    assert model("ours") == replace(architecture("llama-3.1-8b"), name="ours")
    add(edited(tmp_path, cluster("3x8:h200"), name="basement"))
    assert cluster("basement").nodes == 3
    add(edited(tmp_path, fabric("hgx-h100"), name="slow-fabric", nic_bandwidth=1e9))
    path = tmp_path / "cluster.yaml"
    path.write_text("{nodes: 2, gpus_per_node: 8, device: h100, fabric: slow-fabric}")
    assert cluster(str(path)).fabric.nic_bandwidth == 1e9


@pytest.mark.parametrize("name", ["h100", "H100", "../evil", "", "a b", "x" * 65])
def test_a_name_that_is_taken_or_none_is_refused(name, tmp_path):
    with pytest.raises(InputError, match="name"):
        add(edited(tmp_path, device("h100"), name=name))
    assert not home().exists()


def test_a_broken_entry_leaves_nothing_behind(tmp_path):
    path = tmp_path / "entry.yaml"
    path.write_text(to_yaml(device("h100")).replace("hbm_bandwidth", "hbm_bandwith"))
    with pytest.raises(InputError, match="hbm_band"):
        add(path)
    assert not home().exists()


def test_what_is_no_entry_is_refused(tmp_path):
    path = tmp_path / "entry.yaml"
    for text in ("{}", "a: 1", "[1]", "7", ""):
        path.write_text(text)
        with pytest.raises(InputError):
            add(path)


def test_a_folder_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SHARDPROOF_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="cannot write"):
        add(edited(tmp_path, device("h100"), name="other"))
    assert device("h100").name == "h100"


def test_the_users_table_of_costs_is_put_over_the_shipped_one(own_home):
    own_home.mkdir()
    before = device("h100")
    (own_home / "costs.yaml").write_text("h100: {price_per_hour: 2.5}")
    after = device("h100")
    assert after.price_per_hour == 2.5
    assert after.power_watts == before.power_watts == 700
    (own_home / "costs.yaml").write_text("h100: {price_per_our: 2.5}")
    with pytest.raises(InputError, match="price_per_our"):
        device("h100")
    (own_home / "costs.yaml").write_text("[1]")
    with pytest.raises(InputError, match="mapping"):
        device("h100")


LLAMA = to_yaml(architecture("llama-3.1-8b"))
YAML = {
    "empty": "",
    "list": "- 1",
    "text": "hello",
    "broken": "hidden: [",
    "tab": "hidden:\n\t- 1",
    "unknown field": LLAMA + "hiden: 8\n",
    "unknown inner field": LLAMA.replace("heads: 32", "heads: 32\n      haeds: 32"),
    "twice": LLAMA + "hidden: 8\n",
    "anchor": LLAMA.replace("hidden: 4096", "hidden: &a 4096"),
    "bomb": "a: &a [x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n",
    "tag": "name: !!python/name:os.system\n",
    "object": "!!python/object/apply:os.system ['true']\n",
    "deep": "a: " + "[" * 10_000,
    "two documents": LLAMA + "---\n" + LLAMA,
    "mapping as key": "{{a: 1}: 2}",
    "number as name": LLAMA.replace("name: llama-3.1-8b", "name: 8"),
    "float size": LLAMA.replace("hidden: 4096", "hidden: 4096.0"),
    "negative": LLAMA.replace("hidden: 4096", "hidden: -4096"),
    "truth": LLAMA.replace("hidden: 4096", "hidden: yes"),
    "not a number": LLAMA.replace("hidden: 4096", "hidden: .nan"),
    "huge": LLAMA.replace("hidden: 4096", f"hidden: {10**30}"),
    "digits": LLAMA.replace("hidden: 4096", f"hidden: {'9' * 6000}"),
    "no layers": LLAMA[: LLAMA.index("layers:")] + "layers: []\n",
    "endless layers": LLAMA.replace("repeat: 32", "repeat: 1000000000"),
    "both attentions": LLAMA.replace("dense:", "moe: {}\n    dense:"),
    "bad date": "name: 2024-99-99\n",
}


@pytest.mark.parametrize("case", YAML)
def test_hostile_yaml_is_refused_in_a_sentence(case, tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text(YAML[case], "utf-8")
    with pytest.raises(InputError) as caught:
        model(str(path))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


CLUSTERS = [
    "nodes: 0",
    "nodes: 8",
    "{nodes: 8, gpus_per_node: 8, device: h1000}",
    "{nodes: 0, gpus_per_node: 8, device: h100}",
    "{nodes: 8, gpus_per_node: -8, device: h100}",
    "{nodes: 8, gpus_per_node: 8, device: h100, fabric: {}}",
    "{nodes: 8, gpus_per_node: 8, device: h100, oversubscription: 0.5}",
    "{nodes: 8, gpus_per_node: 8, device: h100, colour: red}",
    "{nodes: 8000000, gpus_per_node: 8, device: h100}",
    "{nodes: 8, gpus_per_node: 8, device: 7}",
    "[",
]


@pytest.mark.parametrize("text", CLUSTERS)
def test_a_cluster_that_cannot_be_is_refused(text, tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(InputError):
        cluster(str(path))


@given(text=st.text(max_size=200))
def test_any_text_parses_or_is_refused(text):
    try:
        parse_yaml(text, "x")
    except InputError as error:
        assert "\n" not in str(error)


def test_yaml_numbers_with_an_exponent_are_numbers(tmp_path):
    text = to_yaml(device("h100")).replace("3350000000000.0", "3.35e12")
    assert "3.35e12" in text
    assert read_device(parse_yaml(text, "x"), "x") == device("h100")


def test_sizes_may_have_units():
    text = to_yaml(device("h100"))
    size = str(device("h100").hbm_bytes)
    found = read_device(parse_yaml(text.replace(size, "80GiB"), "x"), "x")
    assert found.hbm_bytes == 80 * 2**30


def test_home_is_the_variable_or_a_folder_of_the_user(monkeypatch):
    monkeypatch.delenv("SHARDPROOF_HOME")
    monkeypatch.setenv("HOME", "/nowhere")
    assert home() == Path("/nowhere/.config/shardproof")
