"""Every golden case, tensor by tensor: a failure names the tensor that is off."""

import json
from collections import Counter
from pathlib import Path

import pytest

from shardproof.benchmarks.memory import run

DATA = Path(__file__).parent / "data" / "megatron_layers.json"
CASES = json.loads(DATA.read_text())
FORMATS = {"bfloat16": "bf16", "float32": "fp32"}
TOTALS = ("per_layer_saved", "per_layer_params", "saved_bytes", "params")


def label(entry):
    case = entry["case"]
    keys = ("impl", "tp", "sp", "ep", "etp", "recompute", "pre", "post")
    shown = (f"{k}={case[k]}" for k in keys if case.get(k))
    return f"{entry['name']}-{'-'.join(shown)}"


def test_all_cases_are_there():
    assert len(CASES) == 149


@pytest.mark.parametrize("entry", CASES, ids=label)
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
    surplus = {key: (count, names[key]) for key, count in (got - expected).items()}
    assert (dict(expected - got), surplus) == ({}, {})
    for total in TOTALS:
        assert result[total] == entry[total], total
