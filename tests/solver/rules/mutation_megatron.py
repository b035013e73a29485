"""Cases by hand of Megatron's rules."""

from dataclasses import replace

from megatron_cases import DENSE, SPARSE
from mutation_cases import MOE, OWN, SIZES, Hand, at, both_sides, no, yes

from shardproof.models.layout import (
    OFFLOADS,
    RECOMPUTE_BLOCK,
    RECOMPUTE_FULL,
    SHARDINGS,
)

CONFIG = "megatron-core 0.16.1 transformer_config.py, __post_init__: "
LAUNCHER = "Megatron-LM core_v0.16.1 megatron/training/arguments.py, validate_args: "
STATE = "megatron-core 0.16.1 parallel_state.py: "
ENGINE = "TransformerEngine context_parallel.py, attn_forward_func_with_cp: "
_A2A = {"vpp": 2, "overlap_p2p_comm": True, "overlap_moe_expert_parallel_comm": True}
_ENGINE = {"cuda_graph_impl": "transformer_engine"}
_LOCAL = {"cuda_graph_impl": "local", "ep": 1}
_DROP = {"moe_expert_capacity_factor": 1.0}
_PADDED = {**_DROP, "moe_pad_expert_input_to_capacity": True}


_DEVICES = "NVIDIA data sheets: H100 has FP8, no MXFP8 or NVFP4; A100 has none"
_HOPPER = replace(SIZES, formats=("bf16", "fp16", "fp8"))
_AMPERE = replace(SIZES, formats=("bf16", "fp16"))
_NV, _MX = ("bf16", "fp16", "fp8", "nvfp4"), ("bf16", "fp16", "fp8", "mxfp4")
_CONNECTIONS = LAUNCHER + "CUDA_DEVICE_MAX_CONNECTIONS"
_MIXED = {"cuda_device_max_connections": "8"}
_NODE, _FILLS = "arXiv 2104.04473 section 3.2", "arXiv 2104.04473 section 2.2"
_ORDER = "megatron-core 0.16.1 schedules.py, get_forward_backward_func"
_CLIPPED = "megatron-core 0.16.1 transformer_block.py, _checkpointed_forward"
_HOST, _LAYERS = CONFIG + "cpu_offloading", "cpu_offloading_num_layers"
_MTP = "megatron-core 0.16.1 multi_token_prediction.py, get_mtp_num_layers_to_build"
_BLOCK = {"recompute": RECOMPUTE_FULL, "recompute_count": 2, "recompute_method": 3}
_AUTO = {"recompute": RECOMPUTE_FULL, "recompute_num_layers": 5}
_FIRST = {"num_layers_in_first_pipeline_stage": 4}
_OVERLAP = {"overlap_moe_expert_parallel_comm": 1}
_TWO = at("interleaved", **_OVERLAP, pp=2, vpp=2, ep=2)
_FEW = replace(MOE, layers=4)
_SIX = replace(SIZES, domain=6)
_SIX_MOE = replace(MOE, domain=6)
_STYLES, _DISPATCHERS = {"cp_style": (0, 1, 2)}, {"dispatcher": (0, 1)}
_SHARED = replace(MOE, shared_ffn=(256,))
_SHARDED = {"use_megatron_fsdp": 1}
_HSDP = {"sharding": SHARDINGS.index("hsdp"), **_SHARDED}
_FSDP = {"sharding": SHARDINGS.index("megatron-fsdp"), **_SHARDED}
_NO_FP16 = replace(SIZES, formats=("bf16", "fp8"))
_BIASED = "megatron-core 0.16.1 random.py, CheckpointFunction.backward"
_BIAS = {"bias": True}
_MLP = {"recompute_granularity": "selective", "recompute_modules": ["mlp"]}
_EARLY = "Megatron-LM core_v0.15.0 megatron/training/arguments.py, validate_args"
_HALF = {"precision": 1, "moe_grouped_gemm": 0}
MEGATRON: dict[str, list[Hand]] = {
    "rank-order": [yes(STATE + "RankGenerator", SPARSE, order="tp-cp-ep-pp", world=8)],
    "pp-shared": [no(STATE + "equal pp groups", SPARSE, order="tp-pp-cp-ep-dp")],
    "batch": [
        no("num_microbatches_calculator.py: micro-batches", DENSE, global_batch=-64),
        no("num_microbatches_calculator.py: batch size", DENSE, global_batch=0),
        no(
            "num_microbatches_calculator.py: batch size",
            DENSE,
            global_batch=-64,
            micro_batch=-1,
        ),
    ],
    "layers-pp": [
        Hand(
            True,
            "the sentence: of an even split",
            axes={"split": 1, "pp": 3},
            sizes=replace(SIZES, world=6, global_batch=12),
        )
    ],
    "size-lost": [
        no(
            "transformer_block.py, get_num_layers_to_build: the rest is -1 layers",
            DENSE,
            pp=4,
            num_layers_in_first_pipeline_stage=12,
            num_layers_in_last_pipeline_stage=13,
        )
    ],
    "layers-account": [
        Hand(
            True,
            "the sentence: where they count",
            axes={"split": 1, "pp": 3},
            sizes=replace(SIZES, world=6, global_batch=12),
        )
    ],
    "vpp-pp": [
        Hand(
            False,
            "the sentence: vpp > 1 needs pp > 1, of a V too",
            axes=at("zbv", vpp=2, pp=1),
            dialect="primus",
        )
    ],
    "layout": [
        no(
            "pipeline_parallel_layer_layout.py, validate_layer_layout: one loss",
            DENSE,
            pipeline_model_parallel_layout="Et*12L|t*12L",
        )
    ],
    "layout-mtp": [
        no(
            "pipeline_parallel_layer_layout.py: MTP in the last virtual stage",
            DENSE,
            pp=2,
            vpp=2,
            overlap_p2p_comm=True,
            mtp_num_layers=1,
            pipeline_model_parallel_layout="Et*12|t*12m||L",
        )
    ],
    "layout-lost": [
        yes(
            "pipeline_parallel_layer_layout.py: one stage, one rank",
            DENSE,
            pp=1,
            vpp_from_layout=False,
            pipeline_model_parallel_layout="Et*24L",
        )
    ],
    "cp-a2a": [
        yes(ENGINE + "cp = 1 has no exchange", DENSE, tp=16, cp=1, cp_comm_type="a2a")
    ],
    "cp-swa": [
        yes(
            ENGINE + "cp = 1 has no exchange",
            DENSE,
            cp=1,
            cp_comm_type="p2p",
            window_size=[127, 0],
        )
    ],
    "expert-pattern": [
        yes(
            "moe_layer_freq is read where there are experts",
            DENSE,
            moe_layer_freq=[0] * 5,
        )
    ],
    "shared-width": [
        yes(
            CONFIG + "moe_shared_expert_intermediate_size > 0",
            SPARSE,
            moe_shared_expert_intermediate_size=1,
            tp=1,
            sequence_parallel=False,
        )
    ],
    "router-groups": [
        yes(
            CONFIG + "moe_router_num_groups of 1",
            SPARSE,
            moe_router_num_groups=1,
            moe_router_group_topk=1,
        )
    ],
    "distribute-saved": [
        no(
            LAUNCHER + "recompute_granularity must be full",
            DENSE,
            distribute_saved_activations=True,
            sequence_parallel=False,
            recompute_method="uniform",
        )
    ],
    "recompute-mtp": [
        yes(
            "multi_token_prediction.py: nothing is recomputed",
            DENSE,
            mtp_num_layers=1,
            recompute_method="uniform",
            recompute_num_layers=2,
        )
    ],
    "recompute-uniform": [
        yes(
            "transformer_block.py: nothing is recomputed",
            DENSE,
            recompute_method="uniform",
            recompute_num_layers=5,
        )
    ],
    "ep-a2a-overlap-mtp": [
        no(CONFIG + "mtp_num_layers is None or 1", SPARSE, **_A2A, mtp_num_layers=0)
    ],
    "param-gather-step": [
        no(
            LAUNCHER + "overlap_param_gather_with_optimizer_step",
            DENSE,
            vpp=2,
            overlap_p2p_comm=True,
            use_megatron_fsdp=True,
            use_distributed_optimizer=False,
            overlap_param_gather=True,
            overlap_grad_reduce=True,
            overlap_param_gather_with_optimizer_step=True,
            **_MIXED,
        )
    ],
    "max-connections": [
        no(_CONNECTIONS, DENSE, cp=1, **_MIXED),
        no(_CONNECTIONS, DENSE, tp=1, sequence_parallel=False, **_MIXED),
        yes(_CONNECTIONS, DENSE, tp=1, cp=1, sequence_parallel=False, **_MIXED),
    ],
    "fp8-device": [
        *both_sides(_DEVICES, {"fp8": 1}, {"fp8": 1, "fp8_recipe": 3}, _HOPPER),
        *both_sides(_DEVICES, {}, {"fp4": 1}, _HOPPER),
        *both_sides(_DEVICES, {}, {"fp8": 1}, _AMPERE),
        Hand(True, _DEVICES, sizes=_HOPPER, axes={"fp8_recipe": 3}),
        Hand(True, _DEVICES, sizes=replace(SIZES, formats=_NV), axes={"fp4": 1}),
        Hand(True, _DEVICES, sizes=replace(SIZES, formats=_MX), axes={"fp4": 1}),
    ],
    "graph-moe-router": [
        yes(
            CONFIG + "cuda_graph_scope of moe alone",
            SPARSE,
            **_LOCAL,
            **_PADDED,
            cuda_graph_scope=["moe"],
        )
    ],
    "graph-moe": [
        yes(
            CONFIG + "cuda_graph_scope without experts",
            DENSE,
            cuda_graph_impl="local",
            cuda_graph_scope=["attn"],
        ),
        yes(
            CONFIG + "num_moe_experts > 1",
            SPARSE,
            **_ENGINE,
            num_moe_experts=2,
            ep=2,
            cuda_graph_scope=["moe_router"],
        ),
    ],
    "graph-mlp": [
        no(
            CONFIG + "mlp in cuda_graph_scope with num_moe_experts > 1",
            SPARSE,
            **_ENGINE,
            num_moe_experts=2,
            ep=2,
            cuda_graph_scope=["mlp"],
        ),
        yes(
            CONFIG + "mlp in cuda_graph_scope with num_moe_experts of 1",
            SPARSE,
            **_ENGINE,
            num_moe_experts=1,
            moe_router_topk=1,
            moe_router_pre_softmax=True,
            ep=1,
            cuda_graph_scope=["mlp"],
        ),
    ],
    "graph-sync": [
        yes(
            CONFIG + "moe_preprocess in cuda_graph_scope",
            SPARSE,
            **_LOCAL,
            **_DROP,
            cuda_graph_scope=["attn"],
        )
    ],
    "tp-node": [
        *both_sides(_NODE, {"tp": 2}, {"tp": 4, "pp": 2}, _SIX),
        *both_sides(_NODE, {"etp": 2}, {"etp": 4, "pp": 2}, _SIX_MOE),
    ],
    "pipeline-fills": [
        Hand(True, _FILLS, axes={"mbs": 2}),
        Hand(False, _FILLS, axes={"mbs": 4}),
        Hand(False, _FILLS, sizes=replace(SIZES, global_batch=6)),
    ],
    "etp-dense": both_sides(OWN, {}, {"etp": 2}),
    "layers-balanced": [
        *both_sides(OWN, {"split": 0}, {"split": 1}),
        Hand(True, OWN, axes={"split": 1}, sizes=replace(SIZES, layers=18)),
        Hand(True, OWN, axes={"split": 1, **_FIRST}),
    ],
    "layers-uneven": [
        *both_sides(OWN, {"split": 0}, {"split": 2, "pp": 2}),
        Hand(True, OWN, axes={"split": 2}, sizes=replace(SIZES, layers=17)),
        Hand(True, OWN, axes={"split": 2, "pp": 2, **_FIRST}),
    ],
    "schedule-vpp": [
        *both_sides(_ORDER, {}, at("1f1b", vpp=2)),
        *both_sides(_ORDER, at("interleaved", vpp=2), at("interleaved")),
        *both_sides(_ORDER, at("interleaved", vpp=4), at("gpipe")),
        Hand(False, _ORDER, axes=at("gpipe", vpp=2)),
    ],
    "recompute-present": [
        *both_sides(OWN, {"recompute": 1 << 3}, {"recompute": 1 << 4}),
        Hand(True, OWN, axes={"recompute": RECOMPUTE_FULL}),
    ],
    "recompute-bias": [
        no(_BIASED, DENSE, **_BIAS, **_MLP),
        yes(_BIASED, DENSE, **_BIAS, **_MLP, fp8="e4m3", fp8_recipe="tensorwise"),
        yes(_BIASED, DENSE, **_BIAS, **_MLP, fp4=True),
        yes(_BIASED, DENSE, **_BIAS),
        yes(_BIASED, DENSE, **_MLP),
    ],
    "ep-fp16": [
        Hand(False, _EARLY, sizes=MOE, axes={"ep": 2}, options=_HALF),
        Hand(True, _EARLY, sizes=MOE, axes={"ep": 1}, options=_HALF),
        Hand(True, _EARLY, sizes=MOE, axes={"ep": 2}),
    ],
    "grouped-bf16": [
        Hand(False, _EARLY, sizes=MOE, options=_HALF | {"moe_grouped_gemm": 1}),
        Hand(True, _EARLY, sizes=MOE, options={"moe_grouped_gemm": 1}),
        Hand(True, _EARLY, sizes=MOE, options=_HALF),
    ],
    "recompute-clipped": [
        Hand(True, _CLIPPED, axes={**_BLOCK, "recompute_num_layers": 4}),
        Hand(False, _CLIPPED, axes={**_BLOCK, "recompute_num_layers": 5}),
        Hand(True, _CLIPPED, axes=_AUTO),
        Hand(True, _CLIPPED, axes={"recompute_count": 2, "recompute_num_layers": 5}),
    ],
    "offload-nothing": [
        Hand(False, _HOST, axes={"pp": 1, "cpu_offloading": 1, _LAYERS: 0}),
        Hand(True, _HOST, axes={"pp": 1, "cpu_offloading": 1, _LAYERS: 1}),
        Hand(True, _HOST, axes={"pp": 1, _LAYERS: 0}),
    ],
    "sharding-stage": [
        *both_sides(OWN, {"sharding": 1}, {"sharding": 2}),
        Hand(True, OWN, axes={"sharding": 2, "use_megatron_fsdp": 1}),
    ],
    "mtp": [
        Hand(True, _MTP, sizes=replace(SIZES, mtp_layers=2)),
        Hand(False, _MTP, sizes=replace(SIZES, mtp_layers=2), axes=_FIRST),
        Hand(True, _MTP, sizes=replace(SIZES, mtp_layers=1), axes=_FIRST),
    ],
    "cp-style-one": [
        Hand(False, OWN, axes={"cp_style": 1}, domains=_STYLES),
        Hand(True, OWN, axes={"cp_style": 0}, domains=_STYLES),
        Hand(True, OWN, axes={"cp_style": 1, "cp": 2}, domains=_STYLES),
        Hand(False, OWN, axes={"cp_style": 2}, domains=_STYLES),
    ],
    "dispatcher-dense": [
        Hand(False, OWN, axes={"dispatcher": 1}, domains=_DISPATCHERS),
        Hand(True, OWN, axes={"dispatcher": 0}, domains=_DISPATCHERS),
        Hand(True, OWN, sizes=MOE, axes={"dispatcher": 1}, domains=_DISPATCHERS),
    ],
    "shared-overlap-present": [
        Hand(False, OWN, axes={"overlap_shared": 1}),
        Hand(False, OWN, sizes=MOE, axes={"overlap_shared": 1}),
        Hand(True, OWN, sizes=_SHARED, axes={"overlap_shared": 1}),
        Hand(True, OWN, axes={"overlap_shared": 0}),
    ],
    "hsdp": [
        *both_sides(OWN, {**_HSDP, "instances": 2}, {**_HSDP, "instances": 1}),
        Hand(True, OWN, axes={**_HSDP, "instances": 4}),
        *both_sides(OWN, {**_FSDP, "instances": 1}, {**_FSDP, "instances": 2}),
    ],
    "offload-release": both_sides(
        "Megatron-LM core_v0.15.0: no fine_grained_activation_offloading",
        {"offload": OFFLOADS.index("optimizer")},
        {"offload": OFFLOADS.index("activations")},
    ),
    "recompute-groups": [
        Hand(True, _CLIPPED, axes={"recompute": RECOMPUTE_FULL + 2}),
        Hand(False, _CLIPPED, axes={"recompute": RECOMPUTE_FULL + 3}),
    ],
    "recompute-block": [
        Hand(True, _CLIPPED, axes={"recompute": RECOMPUTE_BLOCK + 3}),
        Hand(False, _CLIPPED, axes={"recompute": RECOMPUTE_BLOCK + 4}),
        Hand(
            False,
            _CLIPPED,
            axes={"recompute": RECOMPUTE_BLOCK + 1},
            sizes=replace(SIZES, layers=4),
        ),
    ],
    "fp16-device": [
        Hand(True, _DEVICES, sizes=_HOPPER, options={"precision": 1}),
        Hand(False, _DEVICES, sizes=_NO_FP16, options={"precision": 1}),
    ],
    "bad-odd-overlap": [
        Hand(True, "issue 1810", sizes=MOE, axes=_TWO),
        Hand(False, "issue 1810", sizes=replace(MOE, layers=12), axes=_TWO),
    ],
    "bad-empty-overlap": [
        Hand(True, "issue 1852", sizes=_FEW, axes=_TWO, layout="Et|t|t|tL"),
        Hand(False, "issue 1852", sizes=_FEW, axes=_TWO, layout="Ett||t|tL"),
    ],
    "bad-mxfp8-gather": [
        Hand(True, "issue 2063", axes={"fp8": 1, "fp8_recipe": 3}),
        Hand(True, "issue 2063", axes={"fp8_recipe": 3, "fp8_param_gather": 1}),
        Hand(True, "issue 2063", axes={"fp8": 1, "fp8_param_gather": 1}),
        Hand(
            False,
            "issue 2063",
            axes={"fp8": 1, "fp8_recipe": 3, "fp8_param_gather": 1},
        ),
    ],
}
