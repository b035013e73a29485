"""torchtitan is asked about layouts: the rules that its own checks state."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from shardproof.models.dialects.sizes import Sizes
from shardproof.models.layout import SCHEDULES, Dims
from shardproof.solver.rules import Facts, rules

pytestmark = pytest.mark.slow
_TESTS = Path(__file__).parents[2]
_VERSION = "importlib.metadata"
_PYTHON = os.environ.get("SHARDPROOF_TITAN_PYTHON", sys.executable)
#: What ParallelDims, Decoder.Config and the stages of a pipeline check.
ASKED = (
    "world-dense",
    "ep-mesh",
    "heads-tp",
    "kv-tp",
    "tied-pp",
    "schedule-vpp",
    "stages",
)
_SINGLE, _MANY = {"1F1B": "1f1b", "GPipe": "gpipe"}, {"Interleaved1F1B": "interleaved"}


def _draw(rng: random.Random) -> dict[str, Any] | None:
    tp, pp = rng.choice((1, 2, 3, 4, 8)), rng.choice((1, 2, 3, 4))
    cp, dp = rng.choice((1, 2, 4)), rng.choice((1, 2, 4))
    heads = rng.choice((8, 16, 24, 32, 40))
    case = {
        "world": tp * pp * cp * dp * rng.choice((1, 1, 1, 1, 2)),
        "dp": dp,
        "cp": cp,
        "tp": tp,
        "pp": pp,
        "ep": rng.choice((1, 1, 2, 3, 4, 8)),
        "layers": rng.choice((2, 6, 16, 31, 32)),
        "heads": heads,
        "kv_heads": rng.choice([k for k in (1, 2, 4, 8, heads) if heads % k == 0]),
        "tied": rng.random() < 0.2,
        "schedule": rng.choice((*_SINGLE, *_MANY)),
        "layers_per_stage": rng.choice((None, 1, 2, 4, 8)),
    }
    several = case["schedule"] in _MANY
    stages = pp * (2 if several else 1)
    if case["layers_per_stage"] is not None:
        stages = -(-(case["layers"] + 2) // case["layers_per_stage"])
    if pp == 1 or stages % pp:
        case["layers_per_stage"] = None  # no virtual size would say the same
        stages = pp * (2 if several else 1)
    if pp == 1:
        case["schedule"], stages = "1F1B", 1
    return case | {"vpp": stages // pp}


def _facts(case: dict[str, Any]) -> Facts:
    names = _SINGLE | _MANY
    point = {
        **{n: case[n] for n in ("tp", "pp", "vpp", "cp", "ep", "dp")},
        **{"etp": case.get("etp", 1), "mbs": 1, "m": 1},
        **{n: 0 for n in ("sp", "split", "recompute", "sharding")},
        "schedule": SCHEDULES.index(names[case["schedule"]]),
        "edp": max(1, case["dp"] * case["cp"] * case["tp"] // case["ep"]),
    }
    return Facts(
        dims=Dims.of({name: (code,) for name, code in point.items()}),
        sizes_given=Sizes(
            world=case["world"],
            seq_len=4096,
            global_batch=64,
            layers=case["layers"],
            hidden=4096,
            heads=(case["heads"],),
            kv_heads=(case["kv_heads"],),
            vocab=32000,
            tied=case["tied"],
            moe=True,
            experts=(24,),
        ),
    )


def _broken(case: dict[str, Any]) -> list[str]:
    found = [r for r in rules("torchtitan@0.3") if r.id in ASKED]
    return [r.id for r in found if not r.body(_facts(case)).constant]


def _release() -> str:
    """Return the release that is there, as the dialect names it."""
    found = subprocess.run(
        [_PYTHON, "-c", f"import {_VERSION}; print({_VERSION}.version('torchtitan'))"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        pytest.skip(
            "no torchtitan here: it is NOT asked; pip install torchtitan==0.3.0, or "
            "name a Python that has it in SHARDPROOF_TITAN_PYTHON"
        )
    version = found.stdout.strip()
    return version if version == "0.2.0" else version.rpartition(".")[0]


def _ask(module: str, cases: list[dict[str, Any]], folder: Path) -> list[str | None]:
    asked, said = folder / "cases.json", folder / "said.json"
    asked.write_text(json.dumps(cases), encoding="utf-8")
    subprocess.run(
        [_PYTHON, "-m", f"oracles.verdict.titan.{module}", str(asked), str(said)],
        env=dict(os.environ, PYTHONPATH=str(_TESTS)),
        check=True,
    )
    found: list[str | None] = json.loads(said.read_text("utf-8"))
    return found


def _draw_mesh(rng: random.Random) -> dict[str, int]:
    tp, pp = rng.choice((1, 2, 3, 4)), rng.choice((1, 2))
    cp, dp = rng.choice((1, 2, 4)), rng.choice((1, 2, 4))
    world = tp * pp * cp * dp * rng.choice((1, 1, 1, 1, 1, 2))
    sizes = {"tp": tp, "pp": pp, "cp": cp, "dp": dp, "world": world}
    return sizes | {"ep": rng.choice((1, 2, 3, 4, 8)), "etp": rng.choice((1, tp, 2))}


def test_meshes_agree_in_any_release(tmp_path: Path) -> None:
    """What 0.2 asks of experts changed within it: 0.2.0 borrowed whole groups."""
    release = _release()
    cases = [_draw_mesh(random.Random(f"mesh/{i}")) for i in range(1000)]
    if release == "0.3":
        cases = [case | {"etp": 1} for case in cases]
    known = {r.id: r for r in rules(f"torchtitan@{release}")}
    asked = {"world-dense", "ep-mesh", "ep-borrows", "ep-etp"} & set(known)
    assert len(asked) == 2
    plain = {"layers": 32, "heads": 24, "kv_heads": 24, "tied": False}
    for case, refusal in zip(cases, _ask("ask_mesh", cases, tmp_path), strict=True):
        given = _facts({**plain, "schedule": "1F1B", "vpp": 1, **case})
        broken = [name for name in asked if not known[name].body(given).constant]
        assert bool(broken) == (refusal is not None), (case, broken, refusal)


def test_draws_agree(tmp_path: Path) -> None:
    if _release() != "0.3":
        pytest.skip("only the meshes of torchtitan 0.2 are asked")
    cases = [_draw(random.Random(f"titan/{i}")) for i in range(1500)]
    answers = _ask("ask_titan", cases, tmp_path)
    seen: Counter[str] = Counter()
    for case, refusal in zip(cases, answers, strict=True):
        broken = _broken(case)
        assert bool(broken) == (refusal is not None), (case, broken, refusal)
        seen.update(broken)
    assert set(seen) == set(ASKED), seen
