"""The rules agree with megatron-core 0.16.1, for the reason it gives."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from shardproof.benchmarks import legality
from shardproof.solver.rules import rules

DATA = Path(__file__).parent / "data" / "megatron_core_0.16.1.json.gz"
RULES = {rule.id: rule for rule in rules("megatron@0.16")}
#: Where the stages of a verdict find the rules that a stage may break.
STAGES = {
    "config": {"config"},
    "parallel_init": {"groups"},
    "microbatches": {"micro-batches"},
    "layer_partition": {"build"},
    "schedule": {"schedule"},
    "arguments_py": {"launcher only", "build"},
    "optimizer_config": {"config"},
    "forward_sp": {"first forward"},
    "forward_moe": {"first forward"},
    "build_moe_layer": {"build"},
    "build_dense_layer": {"build"},
    "build_embedding": {"build"},
    "build_spec": {"build"},
}


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    found = json.loads(gzip.decompress(DATA.read_bytes()))
    assert isinstance(found, list)
    return found


@pytest.fixture(scope="module")
def judged(cases: list[dict[str, Any]]) -> list[tuple[bool, list[str]]]:
    return [legality.judge(case) for case in cases]


def test_every_verdict_is_met(
    cases: list[dict[str, Any]], judged: list[tuple[bool, list[str]]]
) -> None:
    assert Counter(c["legal"] for c in cases) == {True: 804, False: 747}
    pairs = zip(cases, judged, strict=True)
    assert [c["id"] for c, (legal, _) in pairs if legal != c["legal"]] == []


def test_a_rule_is_broken_at_the_stage_that_refused(
    cases: list[dict[str, Any]], judged: list[tuple[bool, list[str]]]
) -> None:
    for case, (legal, broken) in zip(cases, judged, strict=True):
        stages = {RULES[rule].where for rule in broken if RULES[rule].decides}
        if legal:
            assert not stages
        elif case["stage_failed"] is None:
            assert "never" in stages
        else:
            assert stages & (STAGES[case["stage_failed"]] | {"never"}), case["id"]


def test_most_machine_checked_rules_are_met_in_the_sample(
    judged: list[tuple[bool, list[str]]],
) -> None:
    seen = {rule for _, broken in judged for rule in broken}
    unseen = {r.id for r in RULES.values() if r.machine_checked} - seen
    # No configuration of the sample was built for these; each has its boundary test.
    assert unseen == {
        "degrees",
        "ep-a2a-overlap-graph",
        "flex-backend",
        "fp8-fp4",
        "graph-dropout",
        "graph-names",
        "graph-recompute-moe",
        "graph-sync",
        "rank-order",
        "router-bias",
        "shared-bias",
    }


def test_result_fields_are_not_read(cases: list[dict[str, Any]]) -> None:
    inputs = ("arch", "config", "world", "global_batch", "micro_batch", "seq")
    for case in cases[::50]:
        bare = {name: case[name] for name in inputs}
        assert legality.judge(bare) == legality.judge(case | {"legal": None})


def test_the_command_prints_one_judgement_for_each_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cases: list[dict[str, Any]]
) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(cases[:7]))
    assert legality.main(["--data", str(path), "--json", "--gate"]) == 0
    printed = json.loads(capsys.readouterr().out)["cases"]
    assert [p["id"] for p in printed] == [c["id"] for c in cases[:7]]
    assert [p["legal"] for p in printed] == [c["legal"] for c in cases[:7]]
    assert set(printed[0]) == {"id", "legal", "rules"}


def test_the_gate_closes_on_one_wrong_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cases: list[dict[str, Any]]
) -> None:
    path = tmp_path / "cases.json.gz"
    wrong = {**cases[0], "legal": not cases[0]["legal"]}
    path.write_bytes(gzip.compress(json.dumps([*cases[:3], wrong]).encode()))
    assert legality.main(["--data", str(path)]) == 0
    assert "3 of      4  75.0000%" in capsys.readouterr().out
    assert legality.main(["--data", str(path), "--gate"]) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ("{}", "holds a JSON list"),
        ("[3]", "a case is a mapping"),
        ('[{"arch": {}}]', "config"),
        ('[{"arch": {}, "config": {}, "world": 8}]', "global_batch"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_hostile_files_get_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, says: str
) -> None:
    path = tmp_path / "cases.json"
    path.write_text(content)
    assert legality.main(["--data", str(path), "--json"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert says in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tp", "2"),
        ("tp", True),
        ("pp", 10**12),
        ("vpp", 2.5),
        ("sequence_parallel", 1),
        ("recompute_modules", "mlp"),
        ("recompute_modules", [1]),
        ("recompute_granularity", 7),
        ("recompute_num_layers", -(2**31)),
        ("offload_modules", {"core_attn": 1}),
        ("pipeline_model_parallel_layout", ["t"]),
        ("pipeline_model_parallel_layout", "E(t*99999)*99999L"),
        ("hierarchical_context_parallel_sizes", "2,2"),
        ("hierarchical_context_parallel_sizes", [2.0]),
        ("cp_comm_type", [1]),
        ("cuda_graph_scope", 5),
        ("moe_expert_capacity_factor", "1.0"),
        ("order", 3),
    ],
)
def test_values_of_the_wrong_kind_are_named(
    cases: list[dict[str, Any]], name: str, value: object
) -> None:
    case = {**cases[0], "config": {**cases[0]["config"], name: value}}
    with pytest.raises(legality.InputError, match=r"^[^\n]+$") as error:
        legality.judge(case)
    assert name in str(error.value) or "pipeline layout" in str(error.value)
