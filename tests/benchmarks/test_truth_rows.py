"""Rows of published runs: what is read, inferred, and left out, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardproof.benchmarks.truth import (
    EXCLUSIONS,
    INFERENCES,
    Row,
    Unstated,
    entries,
    read,
    setting,
)
from shardproof.models.errors import InputError
from shardproof.models.layout import RECOMPUTE_FULL, SHARDINGS

#: mosaicml/llm-foundry, benchmarking README at commit 8c8dd48: MPT-30B on 64 H100.
MPT = {
    "id": "mpt-30b",
    "model": "MPT-30b",
    "layers": "48",
    "hidden": "7168",
    "ffn": "28672",
    "heads": "56",
    "kv_heads": "56",
    "vocab": "50368",
    "seq_len": "2048",
    "gated_mlp": "0",
    "tied_emb": "1",
    "gpu": "H100",
    "hbm_gb": "80",
    "num_gpus": "512",
    "gpus_per_node": "8",
    "precision": "amp_bf16/DEFAULT",
    "framework": "Composer/llm-foundry FSDP1",
    "tp": "1",
    "pp": "1",
    "zero_stage": "3",
    "micro_batch": "8",
    "global_batch": "4096",
    "recompute": "full",
    "flash_attn": "yes",
    "tokens_per_s_per_gpu": "2115.0",
    "step_time_s": "7.7431",
}


def row(**changes: str) -> Row:
    return Row(MPT | changes)


def test_a_row_states_its_layout() -> None:
    found = setting(row())
    assert found.stack == "llm-foundry"
    assert (found.layout.dp, found.layout.m) == (512, 1)
    assert found.layout.recompute == RECOMPUTE_FULL
    assert SHARDINGS[found.layout.sharding] == "zero-3"
    assert found.run.attention == "fa2"
    assert found.measured.step_time_s == 7.7431
    assert not found.excluded


def test_dp_and_accumulation_are_derived_never_read() -> None:
    found = setting(row(dp="3", grad_accum="77"))
    assert found.layout.dp == 512
    assert "dp" in found.assumed


def test_throughput_gives_the_step_time() -> None:
    # 4096 sequences of 2048 tokens over 512 devices, 2115 tokens/s each.
    found = setting(row(step_time_s=""))
    assert found.measured.step_time_s == pytest.approx(4096 * 2048 / 512 / 2115)


def test_a_formula_with_the_recomputed_forward_counts_four_passes() -> None:
    bare = {"step_time_s": "", "tokens_per_s_per_gpu": "", "tflops_per_gpu": "100"}
    plain = setting(row(**bare)).measured.step_time_s
    four = setting(row(**bare, extras="F INCLUDES full recompute")).measured.step_time_s
    assert plain and four
    assert four / plain == pytest.approx(4 / 3)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"gpu": ""}, "no-device"),
        ({"gpu": "TPU v4"}, "no-device"),
        ({"num_gpus": "", "nodes": ""}, "no-devices"),
        ({"layers": "", "model": "unheard of"}, "no-architecture"),
        ({"global_batch": "", "micro_batch": ""}, "no-batch"),
        ({"tp": "", "pp": ""}, "no-layout"),
    ],
)
def test_what_a_prediction_needs(changes: dict[str, str], rule: str) -> None:
    with pytest.raises(Unstated) as caught:
        setting(row(**changes))
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"tp": "3"}, "does-not-divide"),
        ({"oom": "True"}, "failed"),
        ({"step_time_s": "9"}, "fields-disagree"),
        ({"extras": "tier D"}, "tier-d"),
        ({"step_time_s": "", "tokens_per_s_per_gpu": ""}, "no-measurement"),
        ({"step_time_s": "1.5", "tokens_per_s_per_gpu": ""}, "impossible"),
        ({"pp": "64"}, "layers"),
    ],
)
def test_an_excluded_row_still_has_a_setting(
    changes: dict[str, str], rule: str
) -> None:
    assert rule in setting(row(**changes)).excluded


@pytest.mark.parametrize(
    ("text", "recipe"),
    [
        ("BF16", ""),
        ("FP8", "fp8"),
        ("MXFP8", "mxfp8"),
        ("FP8-MX", "mxfp8"),
        ("NVFP4", "nvfp4"),
        ("FP8 (block/MX alt recipe; see doc note)", "mxfp8"),
        ("bf16+fp8(hybrid,blockwise)", "fp8-block"),
        ("fp8 tensorwise", "fp8"),
    ],
)
def test_formats_by_their_words(text: str, recipe: str) -> None:
    assert setting(row(precision=text)).run.recipe == recipe


def test_an_unstated_recomputation_is_the_first_that_fits() -> None:
    roomy = setting(row(recompute="not stated", micro_batch="1"))
    tight = setting(row(recompute="not stated", micro_batch="8"))
    assert roomy.layout.recompute == 0
    assert tight.layout.recompute == RECOMPUTE_FULL


def test_newer_releases_replace_older_ones_and_repeats_count_once() -> None:
    table = [
        row(id="old", notes="25.09 NeMo Container"),
        row(id="new", notes="26.02 NeMo Container"),
        row(id="again", notes="26.02 NeMo Container"),
    ]
    rules = {e.row.id: e.excluded for e in entries(table)}
    assert rules == {"old": ("superseded",), "new": (), "again": ("repeated",)}


def test_figures_that_contradict_each_other_are_both_left_out() -> None:
    slow = {"step_time_s": "15", "tokens_per_s_per_gpu": ""}
    found = entries([row(id="a"), row(id="b", **slow)])
    assert [e.excluded for e in found] == [("contradicted",)] * 2


def test_every_rule_is_a_sentence() -> None:
    for sentence in (*INFERENCES.values(), *EXCLUSIONS.values()):
        assert len(sentence.split()) > 5


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(MPT)), st.text(max_size=12)))
def test_no_text_in_any_column_crashes(changes: dict[str, str]) -> None:
    (found,) = entries([row(**changes)])
    assert set(found.excluded) <= set(EXCLUSIONS)


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            name: st.sampled_from(["", "0", "1", "2", "3", "8", "1e9", "-4", "nan"])
            for name in ("tp", "pp", "vpp", "cp", "ep", "etp", "micro_batch", "layers")
        }
    )
)
def test_no_sizes_crash(changes: dict[str, str]) -> None:
    (found,) = entries([row(**changes, global_batch="256", recompute="")])
    assert set(found.excluded) <= set(EXCLUSIONS)


def test_a_table_is_read_or_the_fault_is_named(tmp_path: Any) -> None:
    path = tmp_path / "table.csv"
    path.write_text("id,gpu\na,H100\n")
    assert [r.id for r in read(path)] == ["a"]
    path.write_text("name\nx\n")
    with pytest.raises(InputError, match="column 'id'"):
        read(path)
    with pytest.raises(InputError, match="cannot read"):
        read(tmp_path / "absent.csv")
