"""Every golden case, tensor by tensor: a failure names the tensor that is off."""

import json
from collections import Counter
from pathlib import Path

import pytest

from shardproof.benchmarks.memory import main, run
from shardproof.models.errors import InputError

DATA = Path(__file__).parent / "data"
GIVEN = json.loads((DATA / "megatron_layers.json").read_text())
MORE = json.loads((DATA / "megatron_layers_more.json").read_text())
MODELS = json.loads((DATA / "megatron_layers_models.json").read_text())
ODD = json.loads((DATA / "megatron_layers_odd.json").read_text())
NARROW = json.loads((DATA / "megatron_layers_narrow.json").read_text())
FORMATS = {"bfloat16": "bf16", "float32": "fp32"}
TOTALS = ("per_layer_saved", "per_layer_params", "saved_bytes", "params")
#: Held once a step has run: a recomputed layer's are made for the forward pass alone,
#: and for the backward pass only then.
COPIES = ("weight_copy_bytes", "per_layer_weight_copies")


def label(entry):
    case = entry["case"]
    keys = ("impl", "tp", "sp", "cp", "ep", "etp", "recompute", "pre", "post")
    shown = (f"{k}={case[k]}" for k in keys if case.get(k))
    return f"{entry['name']}-{'-'.join(shown)}"


def in_other_pieces(case):
    """Whether the framework cuts or joins tensors that the ledger names as one.

    Without grouped products, and in eight or four bits, every expert has its own; a
    ring of keys and values sends both in one tensor; states behind predicted tokens
    are joined for their projections.
    """
    several = case.get("experts", 1) > case.get("ep", 1)
    rings, joins = case.get("cp", 1) > 1, bool(case.get("mtp"))
    narrow = {"fp8", "fp4"} & set(case.get("extra", {}))
    apart = several and bool(narrow or not case.get("grouped"))
    return apart or rings or joins


def bytes_by_format(tensors):
    sums = Counter()
    for (dtype, size), count in tensors.items():
        sums[dtype] += size * count
    return sums


def test_all_cases_are_there():
    assert (len(GIVEN), len(MORE), len(MODELS)) == (149, 194, 209)
    assert len({entry["name"] for entry in [*GIVEN, *MORE, *MODELS]}) >= 12
    assert len(ODD) == 155
    each = Counter(entry["name"] for entry in NARROW)
    assert len(each) == 5
    assert min(each.values()) >= 25


@pytest.mark.parametrize("entry", [*GIVEN, *MORE, *MODELS, *ODD, *NARROW], ids=label)
def test_case(entry):
    result = run([{"case": entry["case"]}])[0]
    expected, got, names = Counter(), Counter(), {}
    for item in entry["items"]:
        if item["nbytes"]:
            dtype = FORMATS.get(item["dtype"], item["dtype"])
            expected[dtype, item["nbytes"]] += item["n"]
    for item in result["items"]:
        got[item["dtype"], item["nbytes"]] += item["n"]
        names.setdefault((item["dtype"], item["nbytes"]), []).append(item["name"])
    if in_other_pieces(entry["case"]):
        assert bytes_by_format(got) == bytes_by_format(expected)
    else:
        surplus = {key: (count, names[key]) for key, count in (got - expected).items()}
        assert (dict(expected - got), surplus) == ({}, {})
    whole = not entry["case"].get("recompute")
    for total in (*TOTALS, *(COPIES if whole else ())):
        if total not in entry:
            continue  # a pattern of layers has no one layer more
        assert result[total] == entry[total], total


def test_command_prints_results_in_order_without_result_fields(tmp_path, capsys):
    cases = [{"case": entry["case"]} for entry in GIVEN[:5]]
    data = tmp_path / "cases.json"
    data.write_text(json.dumps(cases))
    assert main(["--data", str(data), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["cases"]
    assert [p["saved_bytes"] for p in printed] == [
        entry["saved_bytes"] for entry in GIVEN[:5]
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '[{"case": {"h": 64}}]',
        '[{"case": {"h": 64, "a": "x", "s": 8, "b": 1, "layers": 1}}]',
        '[{"case": {"h": 64, "a": 0, "s": 8, "b": 1, "layers": 1}}]',
    ],
)
def test_other_files_are_refused_in_a_sentence(tmp_path, text):
    data = tmp_path / "cases.json"
    data.write_text(text)
    with pytest.raises(InputError, match="give a JSON list"):
        main(["--data", str(data), "--json"])


def test_a_file_that_is_none_is_refused():
    with pytest.raises(InputError, match="/dev/null"):
        main(["--data", "/dev/null"])


def test_a_case_that_makes_no_model_spares_the_others():
    good = {"case": GIVEN[0]["case"]}
    wrong = {"case": {**GIVEN[0]["case"], "a": 0}}
    found = run([wrong, good])
    assert "error" in found[0]
    assert found[1]["saved_bytes"] == GIVEN[0]["saved_bytes"]
