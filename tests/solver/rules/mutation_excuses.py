"""Mutants of rules that no case can find out, and why."""

_SHORTCUT = "a shortcut: what it saves comes to the same"
_ONE_RANK = "vpp-pp refuses every interleaved schedule with pp = 1"
_HALVES = "fp16-bf16 refuses both formats at once"
_OTHER_LAUNCH = "another way of launching: the rule does not ask for it"
_WHOLE = "left alone, what shards nothing has replicas of one part"
_ZERO_1 = "sharding-stage refuses zero-1"
#: Mutants that no case can find out, by a part of their text, and why.
EQUIVALENT: dict[tuple[str, str], dict[str, str]] = {
    ("megatron", "batch"): {
        "d.mbs": "with m >= 1 as it is read, mbs < 1 does not multiply to B",
        "d.m, 1)": "m is read as at least 1, and does not multiply to B < 1",
    },
    ("megatron", "layers-balanced"): {
        "cell >= width -> + 1": "where the two differ vpp is 0",
        "chosen.constant": _SHORTCUT,
    },
    ("megatron", "layers-uneven"): {
        "cell >= width -> + 1": "where the two differ vpp is 0",
        "chosen.constant": _SHORTCUT,
    },
    ("megatron", "size-division"): {
        "without facts.sized": "without sizes all pp stages lie between, at least 1"
    },
    ("megatron", "layers-account"): {
        "without negate(facts.sized)": "size-account refuses sizes with counting"
    },
    ("megatron", "vpp-microbatches"): {"at_least(d.pp, 2)": _ONE_RANK},
    ("megatron", "m-ge-pp"): {"at_least(d.pp, 2)": _ONE_RANK},
    ("megatron", "group-pp"): {"at_least(d.pp, 2)": _ONE_RANK},
    ("megatron", "layout-mtp"): {
        "pp > 0 -> + 1": "with pp = 1 the one rank is rank 0, see mtp-rank",
        "first < 0 -> + 1": "a layout that starts with m has no embedding first",
        "last < first -> + 1": "a letter is not m and t at once",
    },
    ("megatron", "expert-pattern"): {
        "without facts.sizes.moe": "a list is read only where there are experts"
    },
    ("megatron", "distribute-saved"): {
        "without method": "recompute-full refuses full without a method"
    },
    ("megatron", "distribute-saved-sp"): {
        "without facts.recomputes": "distribute-saved refuses it without recomputation"
    },
    ("megatron", "recompute-uniform"): {"group.constant == 1 -> - 1": _SHORTCUT},
    ("megatron", "graph-moe-router"): {
        "without facts.says(_IMPL, 'local')": "graph-preprocess refuses moe_preprocess "
        "alone"
    },
    ("megatron", "graph-preprocess"): {
        "without either_one": "with local both sides of the implication hold"
    },
    ("megatron", "graph-moe"): {
        "without facts.says(_IMPL, 'local')": "graph-preprocess refuses moe_preprocess "
        "alone",
        "without facts.sizes.moe": "without experts their number is 0",
    },
    ("megatron", "graph-padding"): {
        "without facts.says('moe_expert_capacity_factor', 'given')": "capacity-padding "
        "refuses padding without a factor"
    },
    ("megatron", "shared-overlap-present"): {
        "without facts.sizes.moe": "only mixtures have shared experts"
    },
    ("megatron", "recompute-groups"): {
        "axis.hi <= RECOMPUTE_FULL -> + 1": "groups of one layer have no code",
        "axis.hi <= RECOMPUTE_FULL -> - 1": _SHORTCUT,
    },
    ("megatron", "recompute-block"): {
        "axis.hi <= RECOMPUTE_BLOCK -> - 1": _SHORTCUT,
        "equals(blocks, 0) -> - 1": "0 is below the largest chunk too",
    },
    ("megatron", "bad-mxfp8-gather"): {
        "without negate(facts.says('fp8', 'none'))": "fp8-param refuses a gather "
        "without FP8"
    },
    ("torchtitan", "ep-borrows"): {
        "divides(d.ep, d.dp * d.cp)": "world-expert says it where etp = tp",
        "divides(d.ep, d.dp * mesh)": "world-expert says it where etp = 1",
    },
    ("torchtitan", "ep-etp"): {
        "divides(d.etp * d.ep": "world-expert says it with world-dense"
    },
    ("torchtitan", "ep-mesh"): {"divides(": "see REDUNDANT"},
    ("torchtitan", "stages"): {
        "at_least(virtual, 2)": "2 stages are never more than L + 2"
    },
    ("deepspeed", "parameter-type"): {
        "both(negate(half), brain) -> without negate(half)": _HALVES
    },
    ("deepspeed", "accumulation-type"): {
        "both(negate(half), brain) -> without negate(half)": _HALVES,
        "without model_type(facts)[name]": "left alone, each type is the model's where "
        "it is the model's",
    },
    ("deepspeed", "hpz"): {
        "at_least(number, 2) -> - 1": "a part of 1 divides W",
        "without at_least(number, 2)": "a part of 1 divides W, and 0 is cut to 1",
    },
    ("deepspeed", "grad-norm"): {
        "without by_stage_12(facts)": "grad-norm-stage and grad-norm-bf16 refuse what "
        "is built otherwise"
    },
    ("accelerate", "cp-fsdp2"): {
        "SHARDINGS.index('zero-2')) -> - 1": _ZERO_1,
        "equals(facts.dims.sharding, 0) ->": _OTHER_LAUNCH,
    },
    ("accelerate", "fsdp2-shards"): {
        "SHARDINGS.index('zero-2')) -> - 1": _ZERO_1,
        "equals(facts.dims.sharding, 0) ->": "fsdp2 alone is asked "
        "for, and sharding-stage refuses zero-1",
    },
    ("accelerate", "shard-ignored"): {
        "SHARDINGS.index('zero-2'))": _OTHER_LAUNCH,
        "equals(facts.dims.sharding, 0) -> + 1": _ZERO_1,
        "equals(facts.dims.sharding, 0) -> - 1": _WHOLE,
        "without equals(facts.dims.sharding, 0)": _WHOLE,
    },
    ("accelerate", "fsdp1-alone"): {
        "SHARDINGS.index('zero-2'))": _OTHER_LAUNCH,
        "equals(facts.dims.sharding, 0) ->": _OTHER_LAUNCH,
    },
}
#: Rules without which no verdict changes, kept for the name they give a refusal.
REDUNDANT = {
    ("accelerate", "ep-moe"): "axes refuses ep > 1 with experts too",
    ("torchtitan", "ep-mesh"): "with etp-one and world-dense, world-expert says it too",
}
