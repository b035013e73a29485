"""Whatever a config.json holds, it is read right or refused in one sentence."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardproof.models.architecture import Architecture
from shardproof.models.catalogue import model
from shardproof.models.catalogue.huggingface import read_config
from shardproof.models.errors import InputError

CONFIGS = {
    path.stem: json.loads(path.read_text("utf-8"))["config"]
    for path in sorted((Path(__file__).parent / "data").glob("*.json"))
}
LLAMA = CONFIGS["llama-3.1-70b"]
GOOD = json.dumps(LLAMA)


def refused(call, *words):
    """Return the sentence of a refusal: one line, not endless."""
    with pytest.raises(InputError) as caught:
        call(*words)
    said = str(caught.value)
    assert "\n" not in said
    assert 10 < len(said) < 700
    return said


FILES = {
    "empty": "",
    "truncated": GOOD[: len(GOOD) // 2],
    "not json": "model_type: llama",
    "nul bytes": "\0\1\2",
    "list": "[1, 2]",
    "number": "7",
    "text": '"llama"',
    "deep list": "[" * 100_000,
    "deep mapping": '{"a":' * 100_000,
    "no family": "{}",
    "family of a wrong type": '{"model_type": ["llama"]}',
    "infinite": GOOD.replace("28672", "1e400"),
    "not a number": GOOD.replace("28672", "NaN"),
    "minus infinity": GOOD.replace("28672", "-Infinity"),
    "thousands of digits": GOOD.replace("28672", "9" * 6000),
    "twice": GOOD[:-1] + ', "vocab_size": 1000}',
}


@pytest.mark.parametrize("case", FILES)
def test_a_broken_file_is_refused(case, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(FILES[case], "utf-8")
    assert "config.json" in refused(model, str(path))


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(b'{"model_type": "\xff\xfe"}')
    assert "UTF-8" in refused(model, str(path))


def test_a_byte_order_mark_is_read_over(tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert model(str(path)).vocab == 128256


def test_a_huge_file_is_not_read(tmp_path):
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(2**33)
    assert "larger" in refused(model, str(path))


def test_a_folder_without_config_is_refused(tmp_path):
    assert "no config.json" in refused(model, str(tmp_path))


def test_a_config_that_is_a_folder_is_refused(tmp_path):
    (tmp_path / "config.json").mkdir()
    assert "no config.json" in refused(model, str(tmp_path))


WRONG = [-1, 0, True, "8", 8.0, 1.5, [8], {}, {"a": 1}, 10**30, -(10**30)]
SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


@pytest.mark.parametrize("field", [*SIZES, "intermediate_size", "num_key_value_heads"])
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_a_size_of_a_wrong_type_or_value_is_refused(field, value):
    assert field in refused(read_config, {**LLAMA, field: value}, "config.json")


@pytest.mark.parametrize("name", CONFIGS)
def test_every_missing_field_is_named_or_has_a_default(name):
    config = CONFIGS[name]
    whole = read_config(config, "config.json")
    for field in config:
        rest = {k: v for k, v in config.items() if k != field}
        try:
            found = read_config(rest, "config.json")
        except InputError as error:
            assert field in str(error)
        else:
            # A default stands in: it may change options, never a given size.
            assert found.hidden == whole.hidden
            assert found.num_layers == whole.num_layers


@pytest.mark.parametrize("name", CONFIGS)
def test_an_unknown_field_that_is_on_is_named(name):
    for value in (1, 0.5, True, "on", ["x"], {"a": 1}):
        config = {**CONFIGS[name], "extra_ffn_banks": value}
        assert "extra_ffn_banks" in refused(read_config, config, "config.json")


@pytest.mark.parametrize("value", [None, False, 0, 0.0, "", [], {}])
def test_an_unknown_field_that_is_off_is_of_no_effect(value):
    config = {**LLAMA, "extra_ffn_banks": value}
    assert read_config(config, "x") == read_config(LLAMA, "x")


@pytest.mark.parametrize(
    "change",
    [
        {"num_attention_heads": 63},
        {"num_key_value_heads": 7},
        {"hidden_size": 8191},
        {"num_hidden_layers": 10**9},
        {"head_dim": -1},
        {"attention_bias": 1},
        {"tie_word_embeddings": "no"},
        {"sliding_window": 4096, "model_type": "llama"},
        {"layer_types": ["full_attention"]},
    ],
    ids=str,
)
def test_a_llama_that_cannot_be_is_refused(change):
    refused(read_config, {**LLAMA, **change}, "config.json")


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("gpt-oss-20b", {"layer_types": ["full_attention"] * 3}, "layer_types"),
        ("gpt-oss-20b", {"layer_types": ["linear_attention"] * 24}, "out of scope"),
        ("qwen3-30b-a3b", {"num_experts_per_tok": 200}, "more experts"),
        ("qwen3-30b-a3b", {"mlp_only_layers": ["0"]}, "mlp_only_layers"),
        ("deepseek-v3", {"scoring_func": "sparsemax"}, "scoring_func"),
        ("deepseek-v3", {"moe_layer_freq": 2}, "moe_layer_freq"),
        ("deepseek-v3", {"first_k_dense_replace": 62}, "first_k_dense_replace"),
        ("deepseek-v3", {"attention_bias": True}, "attention_bias"),
        ("mpt-7b", {"attn_config": None}, "attn_config"),
        ("mpt-7b", {"no_bias": False}, "no_bias"),
        ("mpt-7b", {"attn_config": {"alibi": False}}, "alibi"),
        ("gpt2-xl", {"add_cross_attention": True}, "out of scope"),
    ],
)
def test_an_option_that_is_not_built_is_named(name, change, said):
    assert said in refused(read_config, {**CONFIGS[name], **change}, "config.json")


@pytest.mark.parametrize(
    ("family", "said"),
    [
        ("lama", "did you mean llama"),
        ("qwen3-moe", "did you mean qwen3_moe"),
        ("x" * 10_000, "known"),
        ("mamba2", "recurrent"),
        ("jamba", "recurrent"),
        ("qwen3_next", "recurrent"),
        ("nemotron_h", "recurrent"),
        ("deepseek_v32", "sparse"),
        ("t5", "encoder"),
        ("bert", "encoder"),
        ("llama4", "more than text"),
    ],
)
def test_a_family_out_of_scope_is_refused_by_its_rule(family, said):
    found = refused(read_config, {**LLAMA, "model_type": family}, "config.json")
    assert said in found
    assert family[:20] in found


@pytest.mark.parametrize(
    "mark", [{"index_topk": 2048}, {"mamba_d_state": 16}, {"vision_config": {"a": 1}}]
)
def test_a_known_family_with_a_foreign_part_is_refused(mark):
    assert "out of scope" in refused(read_config, {**LLAMA, **mark}, "config.json")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(data=st.data(), name=st.sampled_from(sorted(CONFIGS)))
def test_no_value_of_any_field_makes_anything_but_a_model_or_a_sentence(data, name):
    config = dict(CONFIGS[name])
    for field in data.draw(st.lists(st.sampled_from(sorted(config)), max_size=3)):
        config[field] = data.draw(json_values)
    try:
        found = read_config(config, "config.json")
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(found, Architecture)
