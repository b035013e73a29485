"""Run the README's console commands and paste what they print below them.

``--check`` changes nothing and fails if the README shows something else.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"```console\n\$ (?P<command>[^\n]+)\n.*?```", re.DOTALL)


def block(match: re.Match[str]) -> str:
    """Return a console block with the command's own output."""
    command = match["command"]
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, cwd=README.parent
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: exit {done.returncode}: {done.stderr}")
    return f"```console\n$ {command}\n{done.stdout}```"


def main(check: bool) -> int:
    """Rewrite or check the README."""
    old = README.read_text("utf-8")
    new = BLOCK.sub(block, old)
    if check:
        print("README is up to date" if new == old else "README shows other output")
        return int(new != old)
    README.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
