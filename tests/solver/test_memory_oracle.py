"""The brute force of memory, held to what does not come from this project's code.

Its layers equal the golden cases of the framework, its walk the published counts, and
it shares no code with what it checks.
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oracles import memory, memory_kept, memory_state
from oracles.memory_run import exact

import shardproof
from shardproof.benchmarks.memory_cases import architecture_of, kernels_of
from shardproof.models.architecture import Attention
from shardproof.models.memory import Kernels
from shardproof.models.problem import Training

TESTS = Path(__file__).parents[1]
FILES = ("megatron_layers.json", "megatron_layers_more.json")


def goldens() -> list[dict[str, Any]]:
    """Golden cases of one layer with the kernels that the page takes by default.

    Rotation is not fused in any golden, and the head's rows play no part.
    """
    data = TESTS / "models" / "memory" / "data"
    found = [e for f in FILES for e in json.loads((data / f).read_text("utf-8"))]
    whole = ("pp", "moe_freq", "rc_layers", "rc_dist", "layout")
    return [
        entry
        for entry in found
        if has_default_kernels(entry["case"])
        and not any(entry["case"].get(name) for name in whole)
    ]


def has_default_kernels(case: dict[str, Any]) -> bool:
    found = kernels_of(case)
    known: dict[str, Any] = {"vocab_multiple": Kernels().vocab_multiple}
    if found.is_te:
        known["flash"] = True  # a choice of local layers
    if not case.get("mla"):
        known |= {"latent_norm": True, "latent_bias": False}
    return replace(found, **known) == Kernels(rope_fusion=False)


def run_of(case: dict[str, Any]) -> memory.Run:
    modules = case.get("recompute") or []
    config = memory.Config(
        **{n: case.get(n) or 1 for n in ("tp", "cp", "ep")},
        **{n: 1 for n in ("pp", "vpp", "dp", "edp", "m")},
        etp=case.get("etp") or case.get("tp") or 1,
        mbs=case["b"],
        sp=bool(case.get("sp")),
        split="even",
        recompute=frozenset([modules] if isinstance(modules, str) else modules),
        stage=0,
    )
    training = Training(
        seq_len=case["s"], global_batch=1, dropout=bool(case.get("dropout"))
    )
    return memory.Run(architecture_of(case), training, config)


def unfused_rotation(run: memory.Run) -> int:
    """Cosine and sine twice, or the table that recomputing starts from."""
    attention, chosen = run.model.layers[-1].attention, run.config.recompute
    if run.model.position != "rope" or "full" in chosen:
        return 0
    positions = exact(run.training.seq_len, run.config.cp)
    if isinstance(attention, Attention):
        return 4 * run.e * positions * attention.head_dim
    each = 4 if "mla_up_proj" in chosen else 4 * run.e
    return each * positions * attention.rope_dim


@pytest.mark.parametrize("entry", goldens(), ids=lambda entry: entry["name"])
def test_a_layer_keeps_what_the_framework_kept(entry: dict[str, Any]) -> None:
    run = run_of(entry["case"])
    layer = run.model.layers[-1]
    kept = sum(memory_kept.kept(run, layer).values()) + unfused_rotation(run)
    assert kept == entry["per_layer_saved"]
    count = memory_state.layer(run, layer)
    assert count.dense + count.expert == entry["per_layer_params"]


def test_the_goldens_are_of_every_kind() -> None:
    cases = [entry["case"] for entry in goldens()]
    assert len(cases) >= 140
    for name in ("mla", "experts", "shared_f", "qk_ln", "dropout", "recompute", "sp"):
        assert sum(bool(case.get(name)) for case in cases) >= 5


def test_the_walk_holds_what_is_published() -> None:
    """Counts of Narayanan et al. 2021, and of Megatron's warm-up."""
    for pp, m in ((1, 3), (4, 2), (4, 9), (8, 8)):
        held = [memory.held(pp, 1, rank, m) for rank in range(pp)]
        assert [max(v)[0] for v in held] == [min(pp - r, m) for r in range(pp)]
    for pp, vpp, m in ((2, 2, 4), (4, 2, 8), (4, 4, 8)):
        for rank in range(pp):
            most = max(sum(v) for v in memory.held(pp, vpp, rank, m))
            warm_up = 2 * (pp - rank - 1) + (vpp - 1) * pp
            assert most == min(warm_up + 1, m * vpp)
    # Chunks of 3 bytes and 1 peak after warm-up, where the larger is first.
    vectors = memory.held(4, 2, 0, 16)
    assert max(3 * a + b for a, b in vectors) == 27
    assert max(a + 3 * b for a, b in vectors) == 19


def test_the_brute_force_shares_no_code_with_what_it_checks() -> None:
    code = (
        f"import sys; sys.path[:0] = [{str(TESTS)!r}, {str(_above())!r}]\n"
        "from oracles import brute_force, memory\n"
        "print(*(m for m in sys.modules if m.startswith('shardproof')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    allowed = {"", ".models", ".models.architecture", ".models.errors"}
    assert set(ran.stdout.split()) == {f"shardproof{name}" for name in allowed}


def _above() -> Path:
    """Return the folder from which the package was imported."""
    return Path(shardproof.__file__).parents[1]
