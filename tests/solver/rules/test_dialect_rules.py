"""Dialects: which rules each has, and what its own rules allow."""

from collections import Counter
from dataclasses import replace

import pytest
from strategies import plain_problem

from shardproof.models.dialects.megatron import OPTIONS
from shardproof.models.dialects.pipeline_layout import PipelineLayout
from shardproof.models.dialects.sizes import Sizes
from shardproof.models.errors import InputError
from shardproof.models.layout import RECOMPUTE_FULL, SCHEDULES, Dims
from shardproof.solver.domains import bind
from shardproof.solver.rules import (
    ALL_RULES,
    CHECKERS,
    DIALECTS,
    Facts,
    Structures,
    rules,
)
from shardproof.solver.vector import legal_points

PLAIN = {
    "tp": 1,
    "pp": 4,
    "vpp": 1,
    "cp": 1,
    "ep": 1,
    "etp": 1,
    "mbs": 1,
    "sp": 0,
    "schedule": SCHEDULES.index("1f1b"),
    "split": 0,
    "recompute": 0,
    "sharding": 1,
    "dp": 2,
    "edp": 2,
    "m": 8,
}
SIZES = Sizes(
    world=8,
    domain=8,
    seq_len=512,
    global_batch=16,
    layers=16,
    hidden=512,
    heads=(8,),
    kv_heads=(4,),
    vocab=32000,
    dense_ffn=(1536,),
)


def facts(sizes: Sizes = SIZES, schedule: str = "1f1b", **axes: int) -> Facts:
    point = PLAIN | {"schedule": SCHEDULES.index(schedule)} | axes
    options = {n: v for n, v in axes.items() if n not in PLAIN}
    dims = Dims.of({n: (v,) for n, v in point.items() if n in PLAIN})
    return Facts(dims=dims, sizes_given=sizes, options=options)


def body(dialect: str, rule_id: str, given: Facts) -> bool:
    (rule,) = [r for r in rules(dialect) if r.id == rule_id]
    holds = rule.body(given).constant
    assert holds is not None
    return bool(holds)


def test_ids_are_unique_in_each_release() -> None:
    for name, releases in DIALECTS.items():
        for release in releases:
            counts = Counter(r.id for r in rules(f"{name}@{release}"))
            assert max(counts.values()) == 1


def test_every_rule_says_what_it_is() -> None:
    for rule in ALL_RULES:
        assert not rule.sentence.endswith(".")
        assert rule.source
        assert rule.checker in CHECKERS
        assert rule.sentence.format(**facts().constants)


def test_what_is_not_machine_checked_says_why() -> None:
    for rule in rules("megatron@0.16"):
        if rule.kind == "hard" and not rule.machine_checked:
            told = rule.checker != "core" or rule.where in ("launcher only", "never")
            assert told, rule.id


def test_megatron_has_its_own_rules_only() -> None:
    assert {r.dialect for r in rules("megatron@0.16")} == {"megatron"}


def test_releases_gain_rules() -> None:
    old, new = ({r.id for r in rules(f"megatron@{v}")} for v in ("0.14", "0.16"))
    assert {r.id for r in rules("megatron@0.14") if r.until} == old - new
    assert len(new) > len(old)
    assert "early-release" in new - old


def test_unknown_dialects_are_named() -> None:
    with pytest.raises(InputError, match="unknown dialect 'megatrn'; did you mean"):
        rules("megatrn")
    with pytest.raises(InputError, match=r"megatron@0\.16"):
        rules("megatron@9")


def test_the_fsdp2_dialect_is_megatron_with_torch_fsdp2() -> None:
    problem, space = plain_problem()
    everything = legal_points(bind(problem, space)).columns()
    sharded = replace(problem, dialect="fsdp2")
    columns = legal_points(bind(sharded, space)).columns()
    assert set(columns["pp"]) == {1}
    assert set(columns["sharding"]) == {0}
    fits = (everything["pp"] == 1) & (everything["sharding"] == 0)
    assert len(columns["pp"]) == int(fits.sum())


@pytest.mark.parametrize(
    ("schedule", "vpp", "legal"),
    [
        ("1f1b", 1, True),
        ("1f1b", 2, False),
        ("zb-h1", 1, True),
        ("zb-h2", 2, False),
        ("interleaved", 1, False),
        ("interleaved", 3, True),
        ("zbv", 2, True),
        ("v-half", 1, False),
        ("v-min", 3, False),
        ("dualpipe", 1, False),
    ],
)
def test_primus_schedules(schedule: str, vpp: int, legal: bool) -> None:
    given = facts(schedule=schedule, vpp=vpp)
    assert body("primus", "schedule-vpp", given) is legal


def test_a_v_shape_is_not_interleaved() -> None:
    """Its micro-batches need not come in groups of pp."""
    given = facts(schedule="zbv", vpp=2, m=7)
    assert body("primus", "vpp-microbatches", given)
    given = facts(schedule="interleaved", vpp=2, m=7)
    assert not body("primus", "vpp-microbatches", given)


@pytest.mark.parametrize("schedule", ["zb-h1", "zb-h2", "zbv", "v-half", "v-min"])
def test_deferred_weight_gradients_exclude_recomputation(schedule: str) -> None:
    assert body("primus", "zb-recompute", facts(schedule=schedule))
    for code in (1, RECOMPUTE_FULL):
        given = facts(schedule=schedule, recompute=code)
        assert not body("primus", "zb-recompute", given)
    assert body("primus", "zb-recompute", facts(recompute=RECOMPUTE_FULL))


def test_sync_free_stages() -> None:
    def holds(stage: int, deepep: int) -> bool:
        told = facts(turbo_sync_free_moe_stage=stage, use_turbo_deepep=deepep)
        return body("primus", "sync-free", told)

    assert [holds(s, 0) for s in range(5)] == [True, True, False, False, False]
    assert [holds(s, 1) for s in range(5)] == [True, True, True, True, False]
    both = facts(use_turbo_deepep=1, moe_shared_expert_overlap=1)
    assert not body("primus", "turbo-deepep-shared", both)


@pytest.mark.parametrize(
    ("pp", "m", "legal"), [(4, 8, True), (4, 6, False), (4, 9, False), (3, 8, False)]
)
def test_dualpipe(pp: int, m: int, legal: bool) -> None:
    given = facts(schedule="dualpipe", pp=pp, m=m)
    assert body("dualpipe", "dualpipe", given) is legal


def test_dualpipev_needs_no_even_numbers() -> None:
    given = facts(schedule="dualpipev", vpp=2, pp=3, m=7)
    assert body("dualpipe", "dualpipe", given)
    assert body("dualpipe", "schedule-vpp", given)


def test_torchtitan_replicates_no_key_value_heads() -> None:
    given = facts(tp=8)
    assert body("megatron@0.16", "kv-tp", given)
    assert not body("torchtitan", "kv-tp", given)
    assert body("torchtitan", "kv-tp", facts(tp=4))


@pytest.mark.parametrize(
    ("axes", "legal"),
    [
        ({"cp": 1, "sp": 0, "tp": 3}, True),
        ({"cp": 1, "sp": 1, "tp": 3}, False),
        ({"cp": 4, "sp": 1, "tp": 64}, True),
        ({"cp": 8, "sp": 1, "tp": 64}, False),
    ],
)
def test_torchtitan_sequences(axes: dict[str, int], legal: bool) -> None:
    assert body("torchtitan", "seq-cp", facts(**axes)) is legal


def test_torchtitan_expert_meshes() -> None:
    """0.2.0 borrows whole cp and tp groups, later ones any part of the mesh."""
    inside = {"tp": 2, "cp": 2, "dp": 4, "ep": 2}
    assert body("torchtitan@0.3", "ep-mesh", facts(**inside))
    assert not body("torchtitan@0.2.0", "ep-borrows", facts(**inside))
    assert body("torchtitan@0.2.0", "ep-borrows", facts(**{**inside, "ep": 8}))
    assert body("torchtitan@0.2.0", "ep-borrows", facts(**{**inside, "etp": 2}))
    assert body("torchtitan@0.2", "ep-etp", facts(**inside))
    assert not body("torchtitan@0.2", "ep-etp", facts(**{**inside, "etp": 4}))
    assert not body("torchtitan@0.2", "ep-etp", facts(**{**inside, "ep": 32}))
    assert not body("torchtitan@0.3", "etp-one", facts(**{**inside, "etp": 2}))
    assert not body("torchtitan@0.3", "ep-mesh", facts(**{**inside, "ep": 32}))


def test_torchtitan_ties_embeddings_on_one_stage_only() -> None:
    tied = replace(SIZES, tied=True)
    assert body("torchtitan", "tied-pp", facts(tied, pp=1))
    assert not body("torchtitan", "tied-pp", facts(tied, pp=4))


def test_torchtitan_stages_hold_something() -> None:
    assert body("torchtitan", "stages", facts(schedule="zbv", pp=9, vpp=2))
    assert not body("torchtitan", "stages", facts(schedule="zbv", pp=10, vpp=2))
    assert not body("torchtitan", "vpp-pp", facts(schedule="zbv", pp=1, vpp=2))
    for name, vpp in (("gpipe", 1), ("zbv", 2), ("interleaved", 2)):
        given = facts(schedule=name, vpp=vpp)
        assert body("torchtitan", "schedule-vpp", given)
        wrong = facts(schedule=name, vpp=3 - vpp)
        assert not body("torchtitan", "schedule-vpp", wrong)


def test_devices_have_the_formats_they_have() -> None:
    hopper = replace(SIZES, formats=("bf16", "fp8"))
    plain, scaled = facts(hopper, fp8=1), facts(hopper, fp8=1, fp8_recipe=3)
    assert body("megatron@0.16", "fp8-device", plain)
    assert not body("megatron@0.16", "fp8-device", scaled)
    ampere = replace(SIZES, formats=("bf16",))
    assert not body("megatron@0.16", "fp8-device", facts(ampere, fp8=1))
    assert not body("megatron@0.16", "fp8-device", facts(hopper, fp4=1))


@pytest.mark.parametrize(
    ("rule_id", "good", "bad"),
    [
        ("tp-node", {"tp": 8}, {"tp": 16}),
        ("pipeline-fills", {"m": 4}, {"m": 3}),
        ("recompute-clipped", {"recompute_num_layers": 4}, {"recompute_num_layers": 5}),
        ("offload-nothing", {"cpu_offloading": 0}, {"cpu_offloading": 1}),
        ("bad-odd-overlap", {"pp": 4}, {"pp": 16}),
        ("bad-mxfp8-gather", {"fp8_recipe": 1}, {"fp8_recipe": 3}),
    ],
)
def test_soft_rules(rule_id: str, good: dict[str, int], bad: dict[str, int]) -> None:
    (rule,) = [r for r in rules("megatron@0.16") if r.id == rule_id]
    assert rule.kind != "hard"
    common = {
        "recompute-clipped": {"recompute": RECOMPUTE_FULL, "recompute_count": 2},
        "bad-odd-overlap": {"overlap_moe_expert_parallel_comm": 1},
        "bad-mxfp8-gather": {"fp8": 1, "fp8_param_gather": 1},
    }.get(rule_id, {})
    assert body("megatron@0.16", rule_id, facts(**common | good))
    assert not body("megatron@0.16", rule_id, facts(**common | bad))


def test_older_launchers_know_experts_in_bf16_only() -> None:
    sparse = replace(SIZES, moe=True, experts=(8,))
    half = OPTIONS["precision"].labels.index("fp16")
    for release, legal in (("0.15", False), ("0.16", True)):
        ids = {rule.id for rule in rules(f"megatron@{release}")}
        assert ("ep-fp16" not in ids) is legal
        assert ("grouped-bf16" not in ids) is legal
    for ep, precision, legal in ((2, 0, True), (2, half, False), (1, half, True)):
        given = facts(sparse, ep=ep, precision=precision)
        assert body("megatron@0.15", "ep-fp16", given) is legal
    for grouped, precision, legal in ((1, 0, True), (1, half, False), (0, half, True)):
        given = facts(sparse, moe_grouped_gemm=grouped, precision=precision)
        assert body("megatron@0.15", "grouped-bf16", given) is legal
    dense = facts(precision=half)
    assert body("megatron@0.15", "grouped-bf16", dense)


def test_primus_asks_for_expandable_segments() -> None:
    assert body("primus", "bad-segments", facts())
    assert not body("primus", "bad-segments", facts(expandable_segments=0))


def test_empty_stages_and_overlap_hang() -> None:
    sparse = replace(SIZES, moe=True, experts=(8,))
    told = facts(sparse, overlap_moe_expert_parallel_comm=1)
    for text, fits in (("Et|t|t|tL", True), ("Et||t|tL", False)):
        layout = Structures(layout=PipelineLayout.parse(text))
        given = replace(told, structures=layout)
        assert body("megatron@0.16", "bad-empty-overlap", given) is fits
    assert body("megatron@0.16", "bad-empty-overlap", told)


def test_several_prediction_layers_are_placed_by_hand() -> None:
    many = replace(SIZES, mtp_layers=2)
    sized = {"num_layers_in_first_pipeline_stage": 4}
    assert body("megatron@0.16", "mtp", facts(many))
    assert not body("megatron@0.16", "mtp", facts(many, **sized))
    assert body("megatron@0.16", "mtp", facts(replace(SIZES, mtp_layers=1), **sized))


@pytest.mark.parametrize("dialect", ["deepspeed", "accelerate"])
def test_new_dialects_plan_what_their_framework_has(dialect: str) -> None:
    problem, space = plain_problem()
    asked = replace(problem, dialect=dialect)
    columns = legal_points(bind(asked, space)).columns()
    assert len(columns["tp"])
    assert set(columns["vpp"]) == {1}
    assert set(columns["sp"]) == {0}
    if dialect == "accelerate":
        assert set(columns["pp"]) == {1}
    else:
        staged = columns["pp"] > 1
        assert set(columns["sharding"][staged]) <= {0, 1}
        assert not (columns["cp"][staged] > 1).any()
