"""Boundaries of rules of groups, divisibility, split, schedule and context.

For each rule: the base, the changes of both sides, those of the just legal side and
those of the side that is illegal by this rule alone.
"""

from typing import Any

from megatron_cases import DENSE, SPARSE, Case

Changes = dict[str, Any]
Entry = tuple[Case, Changes, Changes, Changes]

_EVEN = "Et*12|t*12L"
_FOUR = "Et*6|t*6|t*6|t*6L"
_VIRTUAL = {"pp": 4, "vpp": 2, "overlap_p2p_comm": True}
_NO_SHARED = {"moe_shared_expert_intermediate_size": None}


GROUPS: dict[str, Entry] = {
    "degrees": (DENSE, {}, {"cp": 1}, {"cp": 0}),
    "world-dense": (DENSE, {}, {}, {"world": 68}),
    "world-expert": (
        SPARSE,
        {"world": 72, "global_batch": 72},
        {"ep": 4},
        {"ep": 8},
    ),
    "rank-order": (
        SPARSE,
        {},
        {"order": "tp-cp-ep-dp-pp"},
        {"order": "tp-cp-dp-pp"},
    ),
    "pp-shared": (DENSE, {"order": "tp-cp-ep-pp-dp"}, {"cp": 1}, {"cp": 2}),
    "ep-moe": (DENSE, {}, {"ep": 1}, {"ep": 2}),
    "experts-positive": (SPARSE, {}, {}, {"force_zero_experts": True}),
    "experts-ep": (SPARSE, {}, {"ep": 8}, {"ep": 16}),
    "instances": (
        SPARSE,
        {},
        {"num_distributed_optimizer_instances": 8},
        {"num_distributed_optimizer_instances": 16},
    ),
    "instances-sharding": (
        DENSE,
        {"use_distributed_optimizer": False},
        {"num_distributed_optimizer_instances": 1},
        {"num_distributed_optimizer_instances": 2},
    ),
}
DIVISIBILITY: dict[str, Entry] = {
    "heads-tp": (
        DENSE,
        {"num_attention_heads": 18, "num_query_groups": 2},
        {"tp": 2},
        {"tp": 4},
    ),
    "kv-tp": (
        DENSE,
        {"num_attention_heads": 12, "tp": 4},
        {"num_query_groups": 2},
        {"num_query_groups": 3},
    ),
    "hidden-heads": (
        DENSE,
        {"kv_channels": None, "num_query_groups": 4},
        {"num_attention_heads": 16},
        {"num_attention_heads": 12},
    ),
    "ffn-tp": (DENSE, {}, {}, {"ffn_hidden_size": 4097}),
    "moe-ffn-etp": (SPARSE, {"moe_ffn_hidden_size": 511}, {"etp": 1}, {"etp": 2}),
    "shared-ffn-tp": (
        SPARSE,
        {},
        {},
        {"moe_shared_expert_intermediate_size": 511},
    ),
    "vocab-pad": (
        DENSE,
        {"vocab_size": 50303},
        {"pad_vocab": True},
        {"pad_vocab": False},
    ),
    "seq-cp": (DENSE, {"sequence_parallel": False}, {"seq": 4092}, {"seq": 4094}),
    "seq-sp": (DENSE, {"cp": 1}, {"seq": 4094}, {"seq": 4095}),
    "batch": (DENSE, {}, {"global_batch": 56}, {"global_batch": 57}),
    "sp-tp": (
        DENSE,
        {"tp": 1},
        {"sequence_parallel": False},
        {"sequence_parallel": True},
    ),
    "moe-sp": (SPARSE, {"sequence_parallel": False}, {"tp": 1}, {"tp": 2}),
}
_FIRST, _LAST = (
    "num_layers_in_first_pipeline_stage",
    "num_layers_in_last_pipeline_stage",
)
SPLIT: dict[str, Entry] = {
    "layers-pp": (DENSE, {}, {"num_layers": 26}, {"num_layers": 25}),
    "size-positive": (DENSE, {}, {_FIRST: 1}, {_FIRST: 0}),
    "size-vpp": (
        DENSE,
        _VIRTUAL,
        {_FIRST: 6, "num_layers": 24},
        {_FIRST: 5, "num_layers": 23},
    ),
    "size-middle": (DENSE, {"pp": 4}, {_FIRST: 6}, {_FIRST: 5}),
    "size-division": (
        DENSE,
        {_FIRST: 12, _LAST: 12},
        {},
        {"vpp": 2, "overlap_p2p_comm": True},
    ),
    "size-lost": (DENSE, {"pp": 1, _FIRST: 5}, {_LAST: 24}, {_LAST: 5}),
    "size-account": (
        DENSE,
        {_FIRST: 12},
        {},
        {"account_for_loss_in_pipeline_split": True},
    ),
    "layers-account": (
        DENSE,
        {"account_for_embedding_in_pipeline_split": True},
        {"num_layers": 23},
        {"num_layers": 24},
    ),
}
_LAYOUT = "pipeline_model_parallel_layout"
_GROUP = "microbatch_group_size_per_vp_stage"
SCHEDULE: dict[str, Entry] = {
    "vpp-pp": (
        DENSE,
        {"vpp": 2, "overlap_p2p_comm": True},
        {"pp": 2},
        {"pp": 1},
    ),
    "vpp-p2p": (DENSE, {"vpp": 2, "overlap_p2p_comm": False}, {"pp": 4}, {"pp": 2}),
    "p2p-overlap": (DENSE, {"overlap_p2p_comm": True}, {"pp": 1}, {"pp": 2}),
    "p2p-flush": (
        DENSE,
        {"pp": 4, "vpp": 2, "overlap_p2p_comm_warmup_flush": True},
        {"overlap_p2p_comm": True},
        {"overlap_p2p_comm": False},
    ),
    "vpp-microbatches": (DENSE, _VIRTUAL, {"global_batch": 64}, {"global_batch": 72}),
    "m-ge-pp": (DENSE, {**_VIRTUAL, "global_batch": 24}, {_GROUP: 6}, {_GROUP: 8}),
    "group-pp": (DENSE, _VIRTUAL, {_GROUP: 4}, {_GROUP: 2}),
    "layout-alone": (
        DENSE,
        {_LAYOUT: _EVEN},
        {},
        {"account_for_loss_in_pipeline_split": True},
    ),
    "layout-letters": (
        DENSE,
        {},
        {_LAYOUT: "E,(ttt)*4|t*12,L"},
        {_LAYOUT: "Ex(ttt)*4|t*12L"},
    ),
    "layout-stages": (
        DENSE,
        {},
        {_LAYOUT: _EVEN},
        {_LAYOUT: "Et*12|t*6|t*6L"},
    ),
    "layout": (DENSE, {}, {_LAYOUT: "E|t*24L"}, {_LAYOUT: "t*12E|t*12L"}),
    "layout-layers": (DENSE, {}, {_LAYOUT: _EVEN}, {_LAYOUT: "Et*12|t*11L"}),
    "layout-mtp-count": (
        DENSE,
        {"mtp_num_layers": 1},
        {_LAYOUT: "Et*12|t*12mL"},
        {_LAYOUT: _EVEN},
    ),
    "layout-mtp": (
        DENSE,
        {"mtp_num_layers": 1},
        {_LAYOUT: "Et*24m|L"},
        {_LAYOUT: "Et*12|t*11mtL"},
    ),
    "layout-vpp": (
        DENSE,
        {_LAYOUT: _FOUR, "overlap_p2p_comm": True},
        {"vpp": 2},
        {"vpp": 3},
    ),
    "layout-vpp-twice": (
        DENSE,
        {_LAYOUT: _FOUR, "overlap_p2p_comm": True, "vpp": 2},
        {"vpp_from_layout": True},
        {"vpp_from_layout": False},
    ),
    "layout-lost": (
        DENSE,
        {"vpp_from_layout": False},
        {_LAYOUT: _EVEN},
        {_LAYOUT: _FOUR},
    ),
}
_LEVELS = "hierarchical_context_parallel_sizes"
CONTEXT: dict[str, Entry] = {
    "cp-levels": (
        DENSE,
        {"cp": 4, "cp_comm_type": "a2a+p2p"},
        {_LEVELS: [2, 2]},
        {_LEVELS: [2, 4]},
    ),
    "cp-hierarchy": (
        DENSE,
        {"cp_comm_type": "a2a+p2p"},
        {_LEVELS: [2, 1]},
        {_LEVELS: None},
    ),
    "cp-list": (
        DENSE,
        {},
        {"cp_comm_type": ["p2p"] * 24},
        {"cp_comm_type": ["p2p"] * 23},
    ),
    "cp-a2a": (DENSE, {"cp_comm_type": "a2a"}, {"cp": 4}, {"cp": 8}),
    "cp-swa": (
        DENSE,
        {"window_size": 128},
        {"cp_comm_type": "allgather"},
        {"cp_comm_type": "p2p"},
    ),
}

LAYOUTS: dict[str, Entry] = {
    **GROUPS,
    **DIVISIBILITY,
    **SPLIT,
    **SCHEDULE,
    **CONTEXT,
}
