"""Golden cases drawn at random, made again by the framework's own code."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
STATES = [DATA / "megatron_state.json", DATA / "optimizer_states.json"]
GOLDENS = [*sorted(DATA.glob("megatron_layers*.json")), *STATES]
TESTS = Path(__file__).parents[2]


def skip_without(*names):
    absent = [n for n in names if importlib.util.find_spec(n) is None]
    if absent:
        pytest.skip(f"NOT REMADE: no {absent}; pip install -e '.[oracle]'")


def remake(files, *arguments):
    command = (sys.executable, "-m", "oracles.framework_memory.remake")
    return subprocess.run(
        [*command, "--cases", *map(str, files), *arguments],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("impl", ["local", "te"])
def test_ten_drawn_cases_are_made_again_to_the_byte(impl, pytestconfig):
    skip_without("torch", "megatron", "einops", "transformers")
    if impl == "te" and not os.environ.get("TRANSFORMER_ENGINE"):
        pytest.skip("NOT REMADE: TRANSFORMER_ENGINE names no wheel; see remake.py")
    seed = pytestconfig.getoption("--sample-seed")
    done = remake(GOLDENS, "--impl", impl, "--only", "10", "--seed", seed)
    assert done.returncode == 0, done.stderr[-4000:]
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(records) == 10
    assert all(record["version"] == "0.16.1" for record in records)


@pytest.mark.slow
def test_a_record_that_is_off_is_named(tmp_path):
    skip_without("torch", "megatron", "einops")
    cases = json.loads((DATA / "megatron_layers.json").read_text())
    wrong = next(c for c in cases if c["case"]["impl"] == "local")
    tensor = wrong["items"][0]
    tensor["nbytes"] += 2
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps([wrong]))
    done = remake([file])
    assert done.returncode == 1
    assert f"{tensor['nbytes']:,} bytes: 0 made, {tensor['n']} given" in done.stderr
