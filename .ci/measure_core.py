"""Measure an installed core: its size, and the CPU time of the 70B plan."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

LIMIT_MB = 300
BAR_SECONDS = 2.0
#: A machine under load or slower than the one the bar is for does not fail the run.
LENIENCY = 2.0
PLAN = (
    "plan examples/llama-3.1-70b --cluster 8x8:h100 --seq-len 8192 --global-batch 512"
)


def size_mb(environment: Path) -> float:
    """Return the size of the installed packages but pip and setuptools, in MB."""
    packages = next(environment.glob("lib/python3.*/site-packages"))
    tools = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "wheel")
    total = 0
    for path in packages.rglob("*"):
        top = path.relative_to(packages).parts[0]
        if path.is_file() and top.split("-")[0] not in tools:
            total += path.stat().st_size
    return total / 1e6


def cpu_seconds(command: list[str]) -> float:
    """Return the CPU seconds of one command, user and system, children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if out.returncode:
        raise SystemExit(f"{' '.join(command)} ended in {out.returncode}: {out.stderr}")
    if "--json" in command and not json.loads(out.stdout)["answers"]:
        raise SystemExit("the plan has no answers")
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def main(environment: Path) -> int:
    """Print both figures; return 1 if the size or twice the time bar is exceeded."""
    command = [str(environment / "bin" / "shardproof"), *PLAN.split()]
    cpu_seconds([*command, "--json"])  # compiles the bytecode and checks the answer
    seconds = min(cpu_seconds(command) for _ in range(3))
    size = size_mb(environment)
    print(f"core: {size:.0f} MB installed (limit {LIMIT_MB} MB)")
    print(f"70B plan: {seconds:.2f} CPU seconds (bar {BAR_SECONDS} on an idle machine)")
    return int(size > LIMIT_MB or seconds > LENIENCY * BAR_SECONDS)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
