"""Compare a wheel's files with the tracked files of the package's folders."""

from __future__ import annotations

import subprocess
import sys
import zipfile

FOLDERS = ("solver", "models", "calibration", "interfaces", "benchmarks")
ROOT = ("__init__.py", "py.typed")


def main(wheel: str) -> int:
    """Return 1 and say what differs, or 0."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *FOLDERS, *ROOT], capture_output=True, check=True
    )
    tracked = {f"shardproof/{n}" for n in listed.stdout.decode().split("\0") if n}
    names = zipfile.ZipFile(wheel).namelist()
    packed = {n for n in names if ".dist-info/" not in n}
    for name in sorted(tracked - packed):
        print(f"missing from the wheel: {name}")
    for name in sorted(packed - tracked):
        print(f"in the wheel but not tracked: {name}")
    print(f"{len(packed)} files in the wheel, {len(tracked)} tracked")
    return int(packed != tracked)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
