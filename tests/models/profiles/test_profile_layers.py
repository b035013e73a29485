"""A profile is three layers, and each can be replaced alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from shardproof.models.errors import InputError
from shardproof.models.profiles import (
    Layer,
    assemble,
    layer_names,
    load_layer,
    load_profile,
    profile_of,
    read_layer,
)
from shardproof.models.profiles.layer import KINDS, OWNED, Kind
from shardproof.models.profiles.layer_file import layer_of, text_of

if TYPE_CHECKING:
    from pathlib import Path

EVERY = [(kind, name) for kind in KINDS for name in layer_names(kind)]


def layer(kind: Kind = "stack", **factors: float) -> Layer:
    """Make a layer whose source is this test."""
    named = {name.replace("__", "."): value for name, value in factors.items()}
    return Layer(
        kind=kind, name="mine", factors=named, sources=dict.fromkeys(named, "a test")
    )


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_a_shipped_layer_survives_its_file(kind: Kind, name: str) -> None:
    known = load_layer(kind, name)
    assert known.kind == kind
    again = layer_of(json.loads(text_of(known)), name)
    assert again == known
    assert all(len(source) > 10 for source in known.sources.values())


@pytest.mark.parametrize("kind", KINDS)
def test_one_layer_is_replaced_alone(kind: Kind) -> None:
    known = load_profile("hopper")
    own = known.layers[kind]
    changed = {name: value / 2 for name, value in own.factors.items()}
    changed |= {k: v for k, v in own.factors.items() if k == "stack.sharding_overlap"}
    mixed = known.with_layer(replace(own, name="mine", factors=changed))
    for name, value in known.factors().items():
        expected = changed.get(name, value)
        assert mixed.factors()[name] == expected, name
    assert "mine@1" in mixed.name
    assert set(mixed.layers) == set(KINDS)


def test_the_stack_overrides_what_the_device_says() -> None:
    known = load_profile("hopper")
    stack = known.layers["stack"]
    derated = {**stack.factors, "gemm.bf16.ceiling": 0.5, "band": 0.1}
    sources = dict.fromkeys(derated, "a test")
    mixed = known.with_layer(replace(stack, factors=derated, sources=sources))
    assert mixed.gemm["bf16"].ceiling == 0.5
    assert mixed.gemm["bf16"].saturation == known.gemm["bf16"].saturation
    assert mixed.band == 0.1


def test_a_profile_is_calibrated_when_every_layer_is() -> None:
    known = load_profile("hopper")
    parts = known.layers
    fitted = {kind: replace(parts[kind], calibrated=True) for kind in KINDS}
    assert not known.calibrated
    assert assemble(fitted.values()).calibrated
    for kind in KINDS:
        assert not assemble({**fitted, kind: parts[kind]}.values()).calibrated


def test_layers_are_chosen_by_name() -> None:
    from shardproof.models import catalogue

    own = profile_of(catalogue.device("h100"))
    mixed = profile_of(catalogue.device("h100"), stack="amd-prior")
    assert mixed.stack.host_layer != own.stack.host_layer
    assert mixed.gemm == own.gemm
    assert "amd-prior@1" in mixed.name


def test_an_attention_kernel_has_a_law_of_its_own() -> None:
    known = load_profile("hopper")
    device = known.layers["device"]
    names = ("attention.fa2.forward", "attention.fa2.backward")
    older = {**device.factors, **dict.fromkeys(names, 0.3)}
    older["attention.fa2.saturation"] = 512
    mixed = known.with_layer(
        replace(device, factors=older, sources=dict.fromkeys(older, "a test"))
    )
    assert mixed.attention_law("fa2").forward == 0.3
    assert mixed.attention_law() == known.attention
    assert mixed.factors()["attention.fa2.saturation"] == 512
    with pytest.raises(InputError, match="no factors for the attention kernel fa9"):
        mixed.attention_law("fa9")


def test_a_recipe_without_factors_takes_those_of_its_format() -> None:
    known = load_profile("hopper")
    assert known.gemm_law("bf16", "block") == known.gemm_law("bf16")


def test_the_domain_says_what_was_not_measured() -> None:
    measured = replace(layer(), domain={"gemm.bf16": {"m": (1, 32768)}})
    assert measured.outside("gemm.bf16", m=32768) == []
    assert measured.outside("gemm.bf16", m=40000) == [
        "m of gemm.bf16 is measured from 1 to 32768, got 40000"
    ]
    assert measured.outside("gemm.fp8", m=1) == ["gemm.fp8 was not measured"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"format": "other"}, "JSON object with format"),
    ({"extra": 1}, "no 'extra'"),
    ({"layer": "room"}, "one of device, stack, cluster, got 'room'"),
    ({"factors": {"network.p2p": {"value": 1, "source": "x"}}}, "begin with"),
    ({"factors": {"stack.step": {"value": 1, "source": ""}}}, "needs a source"),
    ({"factors": {"stack.step": 1}}, "wrong kind"),
    ({"domain": {"gemm": {"m": [1]}}}, "wrong kind"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_bad_files_are_refused(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    good = json.loads(text_of(layer(stack__step=0.1)))
    path = tmp_path / "layer.json"
    path.write_text(json.dumps(good | change))
    with pytest.raises(InputError, match=message):
        read_layer(path)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the layer"):
        read_layer(tmp_path / "absent.json")
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(InputError, match="cannot read the layer"):
        read_layer(tmp_path / "broken.json")


def test_layers_that_do_not_make_a_profile_are_refused() -> None:
    known = load_profile("hopper")
    with pytest.raises(InputError, match="one device, one stack and one cluster"):
        assemble([known.layers["device"]])
    with pytest.raises(InputError, match=r"needs stack\.\w+, and none"):
        known.with_layer(layer(stack__step=0.1, memory__optimizer=0.5))
    whole = known.layers["stack"]
    strange = {**whole.factors, "stack.magic": 1.0}
    with pytest.raises(InputError, match=r"no factor stack\.magic"):
        known.with_layer(
            replace(whole, factors=strange, sources=dict.fromkeys(strange, "a test"))
        )


def test_every_kind_owns_factors() -> None:
    assert set(OWNED) == set(KINDS)
