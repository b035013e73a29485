"""Names, specifications of clusters, and the figures of devices and fabrics."""

import time

import pytest

from shardproof.models.catalogue import (
    KINDS,
    architecture,
    cluster,
    device,
    fabric,
    model,
    names,
)
from shardproof.models.errors import InputError

GIB = 2**30


def test_the_catalogue_is_as_large_as_promised():
    assert len(names("models")) >= 40
    assert len(names("devices")) >= 15
    assert len(names("fabrics")) >= 8
    assert len(names("clusters")) >= 8


def test_every_entry_has_the_name_of_its_file():
    readers = (architecture, device, fabric, cluster)
    for kind, read in zip(KINDS, readers, strict=True):
        assert [read(n).name for n in names(kind)] == list(names(kind))


def test_every_figure_has_a_source():
    figures = {"hbm_bytes", "peak_flops", "hbm_bandwidth", "host_bandwidth"}
    for found in map(device, names("devices")):
        assert figures | {"power_watts"} <= set(found.sources)
        assert found.price_per_hour is None or "price_per_hour" in found.sources
    joints = {"scale_up_size", "scale_up_bandwidth", "scale_up_latency"}
    joints |= {"nic_bandwidth", "nic_latency", "nics_per_node"}
    for joined in map(fabric, names("fabrics")):
        assert set(joined.sources) == joints
    assert all(architecture(n).source for n in names("models"))
    assert all(cluster(n).source for n in names("clusters"))


# What torch reports as total memory, in GiB: vllm-project/vllm issue 27508 (H100),
# AMD's logs of Primus (MI355X), out-of-memory messages (H200), nvidia-smi's 189,471
# MiB less what the driver keeps (GB200).
@pytest.mark.parametrize(
    ("name", "gib"), [("h100", 79.11), ("mi355x", 287.98), ("h200", 139.8)]
)
def test_memory_is_what_torch_reports(name, gib):
    assert device(name).hbm_bytes / GIB == pytest.approx(gib, abs=0.005)


def test_memory_is_below_the_nominal_figure_and_near_it():
    for found in map(device, names("devices")):
        share = found.hbm_bytes / (found.nominal_hbm_gb * 10**9)
        assert 0.98 < share < 1.08, found.name
    assert device("gb200").hbm_bytes < 189_471 * 2**20


def test_narrower_formats_are_not_slower():
    for found in map(device, names("devices")):
        peaks = found.peak_flops
        for wide, narrow in (("tf32", "bf16"), ("bf16", "fp8"), ("fp8", "nvfp4")):
            if wide in peaks and narrow in peaks:
                assert peaks[narrow] >= 1.9 * peaks[wide], found.name


def test_a_specification_is_nodes_gpus_and_device():
    found = cluster("16x4:GB200")
    assert (found.nodes, found.gpus_per_node, found.world_size) == (16, 4, 64)
    assert found.device == device("gb200")
    assert found.domain_size == 64
    assert cluster("18x4:gb200").domain_size == 72
    assert cluster("32x4:gb200").domain_size == 72
    assert cluster("8x8:h100").domain_size == 8


def test_a_smaller_node_has_its_part_of_the_fabric():
    whole, half = cluster("2x8:mi355x").fabric, cluster("2x4:mi355x").fabric
    per_link = whole.scale_up_bandwidth / 7
    assert half.scale_up_size == 4
    assert half.scale_up_bandwidth == pytest.approx(3 * per_link)
    assert half.nics_per_node == 4
    switched = cluster("2x4:h100").fabric
    assert switched.scale_up_bandwidth == cluster("2x8:h100").fabric.scale_up_bandwidth
    assert switched.scale_up_size == 4


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("0x8:h100", "at least 1 of nodes"),
        ("8x0:h100", "at least 1 of GPUs"),
        ("-1x8:h100", "NODESxGPUS:DEVICE"),
        ("8x8", "NODESxGPUS:DEVICE"),
        ("8x8:", "NODESxGPUS:DEVICE"),
        ("", "cluster"),
        ("8x8:h10", "did you mean h100"),
        ("9" * 40 + "x8:h100", "devices"),
        ("9" * 9000 + "x8:h100", "NODESxGPUS:DEVICE"),
        ("8x8:../devices/h100", "unknown device"),
        ("gb200-nvl27", "gb200-nvl72"),
        ("nowhere.yaml", "no file"),
    ],
)
def test_a_wrong_specification_is_refused(spec, said):
    with pytest.raises(InputError) as caught:
        cluster(spec)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lama-3.1-70b", "llama-3.1-70b"),
        ("mixtral-8x22", "mixtral-8x22b"),
        ("meta-llama/Llama-3.1-70B", "did you mean llama-3.1-70b"),
        ("nowhere/config.json", "no file"),
        ("", "unknown model"),
        (" ", "unknown model"),
        ("a\nb", "unknown model"),
        ("\udcff", "unknown model"),
        ("a\0b", "unknown model"),
        ("x" * 5000, "unknown model"),
        ("y/" * 3000, "file"),
    ],
)
def test_a_wrong_model_is_refused(text, said):
    with pytest.raises(InputError) as caught:
        model(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_are_found_whatever_their_case():
    assert model("Llama-3.1-8B") == architecture("llama-3.1-8b")
    with pytest.raises(InputError, match="kind"):
        names("gpus")


def test_a_name_wins_over_a_folder_of_that_name(tmp_path, monkeypatch):
    (tmp_path / "llama-3.1-8b").mkdir()
    monkeypatch.chdir(tmp_path)
    assert model("llama-3.1-8b") == architecture("llama-3.1-8b")
    with pytest.raises(InputError, match=r"no config\.json"):
        model("./llama-3.1-8b")


def test_everything_loads_within_its_bar():
    readers = (architecture, device, fabric, cluster)

    def once():
        start = time.process_time()
        for kind, read in zip(KINDS, readers, strict=True):
            for name in names(kind):
                read(name)
        return time.process_time() - start

    assert min(once() for _ in range(5)) <= 0.050
