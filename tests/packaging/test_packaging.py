"""The root is the package: one copy of each module, and a light import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

import shardproof

ROOT = Path(shardproof.__file__).resolve().parent
FOLDERS = ("solver", "models", "calibration", "interfaces", "benchmarks")


def python(code: str) -> str:
    """Run code in a fresh interpreter that finds the package and nothing of us."""
    path = [str(ROOT / ".dev"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_public_name_loads() -> None:
    for name in shardproof.__all__:
        assert getattr(shardproof, name) is not None


def test_public_names_are_documented() -> None:
    for name in shardproof.__all__:
        assert getattr(shardproof, name).__doc__, name


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plann'"):
        _ = shardproof.plann


def test_no_module_is_loaded_under_two_names() -> None:
    """Tests that the link for editable installs makes no second copy."""
    code = """
import sys, os, json, shardproof
for name in shardproof.__all__: getattr(shardproof, name)
import shardproof.interfaces.app
print(json.dumps([[n, os.path.realpath(m.__file__)] for n, m in sys.modules.items()
                  if getattr(m, "__file__", None)]))
"""
    names = defaultdict(list)
    for name, file in json.loads(python(code)):
        if Path(file).is_relative_to(ROOT) and name != "__main__":
            names[file].append(name)
    assert len(names) > 20
    twice = {file: found for file, found in names.items() if len(found) > 1}
    assert not twice


def test_import_is_light() -> None:
    """Tests that importing the package imports no library."""
    code = "import sys, shardproof; print(*sys.modules)"
    loaded = set(python(code).split())
    assert not loaded & {"numpy", "ortools", "pydantic", "rich", "typer", "yaml"}


def test_command_line_starts_light() -> None:
    """Tests that showing help needs neither arrays nor the solver."""
    code = """
import sys
from shardproof.interfaces.cli import main
assert main(["plan", "--help"]) == 0
heavy = {"numpy", "ortools", "pydantic", "rich", "yaml"}
print("loaded:", sorted(heavy & set(sys.modules)))
"""
    assert python(code).endswith("loaded: []\n")


def test_folders_are_listed_alike() -> None:
    """Tests the three lists in which a new folder must be entered."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    tool = config["tool"]
    wheel = tool["hatch"]["build"]["targets"]["wheel"]["only-include"]
    typed = tool["mypy"]["files"]
    layers = tool["importlinter"]["contracts"][0]["layers"]
    for folder in FOLDERS:
        assert folder in wheel
        assert f".dev/shardproof/{folder}" in typed
        assert folder in tool["pyright"]["include"]
        assert f"shardproof.{folder}" in layers


def test_core_needs_no_extra() -> None:
    """Tests that a plain install pulls the core's six libraries and no other."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    names = {
        requirement.split(">")[0].split("<")[0].strip()
        for requirement in config["project"]["dependencies"]
    }
    assert names == {"numpy", "ortools", "pydantic", "pyyaml", "rich", "typer"}


def test_every_package_has_an_init_and_tests_have_none() -> None:
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), path
    assert not list((ROOT / "tests").rglob("__init__.py"))


def test_test_files_have_names_of_their_own() -> None:
    """Tests what pytest needs, since folders of tests are no packages."""
    names = [p.name for p in (ROOT / "tests").rglob("*.py") if p.stem != "__main__"]
    assert sorted(names) == sorted(set(names))
