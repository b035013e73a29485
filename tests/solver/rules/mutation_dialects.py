"""Cases by hand of rules of Primus, DualPipe and torchtitan."""

from dataclasses import replace

from mutation_cases import MOE, OWN, SIZES, Hand, at, both_sides

from shardproof.models.layout import RECOMPUTE_FULL

_PRIMUS = "Primus fd1eeab primus/core/pipeline_parallel/scheduler/algorithms"
_WGRAD = "Primus fd1eeab primus/core/pipeline_parallel/handler/wgrad_handler.py"
_FREE = "Primus fd1eeab _get_sync_free_moe_options"
_TURBO = "Primus fd1eeab validate_args_on_rocm"
_DUAL, _DUALV = "DualPipe dualpipe.py, step", "DualPipe dualpipev.py, step"
_TITAN = "torchtitan 0.3.0 "
_MESH = _TITAN + "distributed/parallel_dims.py, ParallelDims"
_OLD = "torchtitan 0.2 distributed/parallel_dims.py, ParallelDims._validate"
_DECODER = _TITAN + "models/common/decoder.py, update_from_config"
_PIPELINE = _TITAN + "distributed/pipeline_parallel.py"
_LENGTH = _TITAN + "trainer.py: seq_len_divisor"
_MESHED = {"tp": 2, "pp": 1, "cp": 2}
_TIED = replace(SIZES, tied=True)
_STAGE, _DEEP = "turbo_sync_free_moe_stage", {"use_turbo_deepep": 1}
_THREE = replace(SIZES, world=6, layers=12, global_batch=14)
_SHORT = replace(SIZES, seq_len=4)
_EIGHT = at("interleaved", vpp=2, num_layers_in_first_pipeline_stage=1)
_ODD = replace(SIZES, seq_len=511)
_FIXED = {"expandable_segments": 0}
HAND: dict[tuple[str, str], list[Hand]] = {
    ("primus", "schedule-vpp"): [
        *both_sides(_PRIMUS, {}, at("1f1b", vpp=2)),
        *both_sides(_PRIMUS, at("zb-h1"), at("zb-h1", vpp=2)),
        *both_sides(_PRIMUS, at("zb-h2"), at("zb-h2", vpp=2)),
        *both_sides(_PRIMUS, at("interleaved", vpp=2), at("interleaved")),
        *both_sides(_PRIMUS, at("interleaved", vpp=4), at("gpipe")),
        *both_sides(_PRIMUS, at("zbv", vpp=2), at("zbv")),
        *both_sides(_PRIMUS, at("v-half", vpp=2), at("v-half", vpp=4)),
        *both_sides(_PRIMUS, at("v-min", vpp=2), at("v-min")),
        Hand(False, _PRIMUS, axes=at("dualpipe")),
        Hand(False, _PRIMUS, axes=at("dualpipev", vpp=2)),
    ],
    ("primus", "zb-recompute"): [
        *both_sides(_WGRAD, at("zb-h1"), at("zb-h1", recompute=RECOMPUTE_FULL)),
        *both_sides(_WGRAD, at("zbv", vpp=2), at("zbv", vpp=2, recompute=1)),
        Hand(True, _WGRAD, axes={"recompute": RECOMPUTE_FULL}),
    ],
    ("primus", "sync-free"): [
        *both_sides(_FREE, {_STAGE: 1}, {_STAGE: 2}),
        *both_sides(_FREE, {_STAGE: 2, **_DEEP}, {_STAGE: 4, **_DEEP}),
        *both_sides(_FREE, {_STAGE: 3, **_DEEP}, {_STAGE: 3}),
        *both_sides(_FREE, {_STAGE: 0}, {_STAGE: -1}),
    ],
    ("primus", "turbo-deepep-shared"): [
        *both_sides(_TURBO, _DEEP, {**_DEEP, "moe_shared_expert_overlap": 1}, MOE),
        Hand(True, _TURBO, sizes=MOE, axes={"moe_shared_expert_overlap": 1}),
    ],
    ("primus", "bad-segments"): both_sides(
        "Primus pull request 1011", {"expandable_segments": 1}, _FIXED
    ),
    ("dualpipe", "schedule-vpp"): [
        *both_sides(_DUAL, at("dualpipe"), at("dualpipe", vpp=2)),
        *both_sides(_DUALV, at("dualpipev", vpp=2), at("dualpipev")),
        *both_sides(_DUALV, at("dualpipev", vpp=2), at("dualpipev", vpp=4)),
        Hand(False, _DUAL),
    ],
    ("dualpipe", "dualpipe"): [
        Hand(True, _DUAL, axes=at("dualpipe")),
        Hand(False, _DUAL, axes=at("dualpipe", mbs=2)),
        Hand(False, _DUAL, axes=at("dualpipe"), sizes=replace(SIZES, global_batch=14)),
        Hand(False, _DUAL, axes=at("dualpipe"), sizes=replace(SIZES, global_batch=18)),
        Hand(False, _DUAL, axes=at("dualpipe", pp=3), sizes=_THREE),
        Hand(
            False,
            _DUAL,
            axes=at("dualpipe", pp=3),
            sizes=replace(_THREE, global_batch=16),
        ),
        Hand(True, _DUALV, axes=at("dualpipev", vpp=2, pp=3), sizes=_THREE),
        Hand(
            True,
            _DUALV,
            axes=at("dualpipev", vpp=2),
            sizes=replace(SIZES, global_batch=18),
        ),
        Hand(False, _DUALV, axes=at("dualpipev", vpp=2, mbs=2)),
        Hand(
            False,
            _DUALV,
            axes=at("dualpipev", vpp=2),
            sizes=replace(SIZES, global_batch=14),
        ),
    ],
    ("torchtitan", "world-dense"): both_sides(_MESH, {}, {"dp": 1, "mbs": 2}),
    ("torchtitan", "world-expert"): both_sides(_MESH, {}, {"edp": 3}),
    ("torchtitan", "ep-moe"): both_sides(_MESH, {}, {"ep": 2}),
    ("torchtitan", "etp-dense"): [
        Hand(True, OWN),
        Hand(False, OWN, axes={"etp": 2}, dialect="torchtitan@0.2"),
    ],
    ("torchtitan", "experts-ep"): both_sides(
        _MESH, {"ep": 1}, {"ep": 2}, replace(MOE, experts=(7,))
    ),
    ("torchtitan", "heads-tp"): both_sides(
        _DECODER, {"tp": 1}, {"tp": 2}, replace(SIZES, heads=(7,))
    ),
    ("torchtitan", "batch"): both_sides("trainer.py: global_batch_size", {}, {"m": 7}),
    ("torchtitan", "layers-pp"): both_sides(
        _PIPELINE, {"pp": 2}, {"pp": 4}, replace(SIZES, layers=14)
    ),
    ("torchtitan", "layers-balanced"): both_sides(OWN, {}, {"split": 1}),
    ("torchtitan", "layers-uneven"): both_sides(OWN, {}, {"split": 2, "pp": 2}),
    ("torchtitan", "recompute-present"): both_sides(OWN, {}, {"recompute": 1 << 4}),
    ("torchtitan", "kv-tp"): both_sides(
        _DECODER, {"tp": 1}, {"tp": 2}, replace(SIZES, kv_heads=(1,))
    ),
    ("torchtitan", "seq-cp"): [
        *both_sides(_LENGTH, {"cp": 1}, {"cp": 2}, replace(SIZES, seq_len=510)),
        Hand(True, _LENGTH, sizes=_SHORT, axes={"cp": 2}),
        Hand(False, _LENGTH, sizes=_SHORT, axes={**_MESHED, "sp": 1}),
        Hand(True, _LENGTH, sizes=_SHORT, axes=_MESHED),
        Hand(True, _LENGTH, sizes=_ODD),
        Hand(True, _LENGTH, sizes=_ODD, axes={"tp": 2}),
        Hand(False, _LENGTH, sizes=_ODD, axes={"tp": 2, "sp": 1}),
    ],
    ("torchtitan", "etp-one"): both_sides(_MESH, {}, {"etp": 2}, MOE),
    ("torchtitan", "ep-mesh"): [
        Hand(True, _MESH, sizes=MOE, axes={"ep": 2}),
        Hand(False, _MESH, sizes=MOE, axes={"ep": 8}),
    ],
    ("torchtitan", "ep-borrows"): [
        Hand(False, _OLD, sizes=MOE, axes={**_MESHED, "ep": 2}),
        Hand(True, _OLD, sizes=MOE, axes={**_MESHED, "ep": 4}),
        Hand(True, _OLD, sizes=MOE, axes={**_MESHED, "ep": 8}),
        Hand(True, _OLD, sizes=MOE, axes={**_MESHED, "ep": 1}),
        Hand(True, _OLD, sizes=MOE, axes={**_MESHED, "ep": 2, "etp": 2}),
        Hand(True, _OLD, sizes=MOE, axes={**_MESHED, "ep": 4, "etp": 2}),
        Hand(False, _OLD, sizes=MOE, axes={**_MESHED, "cp": 4, "ep": 2, "etp": 2}),
        Hand(False, _OLD, sizes=MOE, axes={"tp": 2, "pp": 1, "ep": 2, "etp": 4}),
    ],
    ("torchtitan", "ep-etp"): [
        Hand(True, _OLD, sizes=MOE, axes={**_MESHED, "ep": 2}),
        Hand(True, _OLD, sizes=MOE, axes={**_MESHED, "ep": 2, "etp": 2}),
        Hand(True, _OLD, sizes=MOE, axes={**_MESHED, "ep": 1, "etp": 4}),
        Hand(False, _OLD, sizes=MOE, axes={**_MESHED, "ep": 2, "etp": 4}),
    ],
    ("torchtitan", "tied-pp"): both_sides(_DECODER, {"pp": 1}, {"pp": 2}, _TIED),
    ("torchtitan", "stages"): [
        Hand(True, _PIPELINE, axes=_EIGHT, sizes=replace(SIZES, layers=6)),
        Hand(False, _PIPELINE, axes=_EIGHT, sizes=replace(SIZES, layers=5)),
    ],
    ("torchtitan", "schedule-vpp"): [
        *both_sides(_PIPELINE, {}, at("1f1b", vpp=2)),
        *both_sides(_PIPELINE, at("gpipe"), at("gpipe", vpp=2)),
        *both_sides(_PIPELINE, at("interleaved", vpp=2), at("interleaved")),
        *both_sides(_PIPELINE, at("interleaved", vpp=4), at("zb-h1")),
        *both_sides(_PIPELINE, at("zbv", vpp=2), at("zbv")),
        *both_sides(_PIPELINE, at("dualpipev", vpp=2), at("dualpipev", vpp=4)),
    ],
    ("torchtitan", "vpp-pp"): [
        *both_sides(_PIPELINE, at("zbv", vpp=2, pp=2), at("zbv", vpp=2, pp=1)),
        Hand(True, _PIPELINE, axes={"pp": 1}),
    ],
    ("torchtitan", "bad-zero-bubble-compile"): [
        Hand(True, "issue 773", axes=at("zbv", vpp=2)),
        Hand(False, "issue 773", axes=at("zbv", vpp=2, recompute=1)),
        Hand(True, "issue 773", axes=at("zbv", vpp=2, recompute=RECOMPUTE_FULL)),
        Hand(True, "issue 773", axes={"recompute": 1}),
    ],
}
