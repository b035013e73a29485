"""megatron-core accepts what ``plan`` prints for the questions of the README."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from verdict_models import PLAIN

import shardproof
from shardproof.models.layout import SPLITS
from shardproof.models.stages import layers_per_chunk

pytestmark = pytest.mark.slow
_ROOT, _TESTS = Path(shardproof.__file__).resolve().parent, Path(__file__).parents[2]
_LLAMA: dict[str, Any] = {"num_query_groups": 8, "vocab_size": 128256}
_LATENT = {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_head_dim": 128,
    "qk_pos_emb_head_dim": 64,
    "v_head_dim": 128,
}
#: Each question: the words of ``plan``, and the model as its authors publish it.
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama-70b": (
        "{root}/examples/llama-3.1-70b --cluster 8x8:h100 --seq-len 8192 "
        "--global-batch 512",
        {
            **_LLAMA,
            "num_layers": 80,
            "hidden_size": 8192,
            "num_attention_heads": 64,
            "ffn_hidden_size": 28672,
        },
    ),
    "llama-8b": (
        "llama-3.1-8b --cluster 1x8:a100-40 --seq-len 8192 --global-batch 64",
        {
            **_LLAMA,
            "num_layers": 32,
            "hidden_size": 4096,
            "num_attention_heads": 32,
            "ffn_hidden_size": 14336,
        },
    ),
    "mixtral": (
        "mixtral-8x22b --cluster 4x8:mi355x --seq-len 4096 --global-batch 512",
        {
            "num_layers": 56,
            "hidden_size": 6144,
            "num_attention_heads": 48,
            "num_query_groups": 8,
            "ffn_hidden_size": 16384,
            "vocab_size": 32768,
            "num_moe_experts": 8,
            "moe_router_topk": 2,
            "moe_ffn_hidden_size": 16384,
        },
    ),
    "deepseek": (
        "deepseek-v3 --cluster 256x8:h800 --seq-len 4096 --global-batch 15360",
        {
            "num_layers": 61,
            "hidden_size": 7168,
            "num_attention_heads": 128,
            "kv_channels": 128,
            "ffn_hidden_size": 18432,
            "vocab_size": 129280,
            "num_moe_experts": 256,
            "moe_router_topk": 8,
            "moe_ffn_hidden_size": 2048,
            "moe_shared_expert_intermediate_size": 2048,
            "moe_layer_freq": [0] * 3 + [1] * 58,
            "moe_router_score_function": "sigmoid",
            "moe_router_num_groups": 8,
            "moe_router_group_topk": 4,
            "moe_router_enable_expert_bias": True,
            "moe_router_load_balancing_type": "seq_aux_loss",
            "mla": _LATENT,
        },
    ),
}


def _answers(words: str) -> dict[str, Any]:
    asked = words.format(root=_ROOT).split()
    done = subprocess.run(
        [sys.executable, "-m", "shardproof.interfaces", "plan", *asked, "--json"],
        env={**os.environ, "PYTHONPATH": str(_ROOT / ".dev")},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _stages(plan: dict[str, Any], layers: int) -> dict[str, Any]:
    """Say the split as Megatron is told: by nothing, by its ends, or in letters."""
    pp, vpp, split = plan["pp"], plan["vpp"], plan["split"]
    sizes = layers_per_chunk(SPLITS.index(split), layers, pp, vpp)
    if split == "first-last":
        return {
            "num_layers_in_first_pipeline_stage": sum(sizes[::pp]),
            "num_layers_in_last_pipeline_stage": sum(sizes[pp - 1 :: pp]),
        }
    if split == "balanced":
        letters = ["t" * size for size in sizes]
        text = "|".join(letters)
        return {"pipeline_model_parallel_layout": f"E{text}L", "vpp": None}
    return {}


def _recompute(name: str) -> dict[str, Any]:
    if name == "none":
        return {}
    if name == "full":
        return {
            "recompute_granularity": "full",
            "recompute_method": "uniform",
            "recompute_num_layers": 1,
        }
    return {
        "recompute_granularity": "selective",
        "recompute_modules": name.split("+"),
    }


def _case(plan: dict[str, Any], arch: dict[str, Any], problem: Any) -> dict[str, Any]:
    config = {
        **PLAIN,
        **{name: plan[name] for name in ("tp", "pp", "cp", "ep", "etp")},
        "vpp": plan["vpp"] if plan["vpp"] > 1 else None,
        "sequence_parallel": plan["sp"],
        "overlap_p2p_comm": plan["vpp"] > 1,
        "moe_grouped_gemm": True,
        "use_distributed_optimizer": plan["sharding"] == "zero-1",
        **_recompute(plan["recompute"]),
        **_stages(plan, arch["num_layers"]),
    }
    return {
        "arch": arch,
        "config": config,
        "world": problem["cluster"]["devices"],
        "global_batch": problem["global_batch"],
        "micro_batch": plan["mbs"],
        "seq": problem["seq_len"],
    }


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_printed_configuration_is_accepted(name: str, tmp_path: Path) -> None:
    for package in ("torch", "megatron", "einops"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"no {package} here: megatron-core is NOT asked about plans")
    words, arch = QUESTIONS[name]
    found = _answers(words)
    cases = [
        _case(answer["layout"], arch, found["problem"]) | {"id": at}
        for at, answer in enumerate(found["answers"])
    ]
    assert cases
    asked, said = tmp_path / "cases.json", tmp_path / "said.jsonl"
    asked.write_text(json.dumps(cases), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "oracles.verdict", str(asked), str(said), "--step"],
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
        check=True,
    )
    for verdict in map(json.loads, said.read_text("utf-8").splitlines()):
        assert verdict["legal"], (cases[verdict["id"]]["config"], verdict)
        assert verdict["step"] is None, (cases[verdict["id"]]["config"], verdict)
