"""``shardproof verify``: check a saved answer again, without the solver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..table import say

if TYPE_CHECKING:
    from ..verify.check import Report

VERIFICATION = "shardproof/verification@1"
VERIFIED, REFUTED, BAD_FILE = 0, 1, 2


def run(path: str, *, count: bool, as_json: bool) -> int:
    """Check, print, and return the exit code.

    Codes are 0 if every claim holds, 1 if one is refuted, 2 if the file is no answer
    or claims what is not checked here.
    """
    from ..verify.check import verify
    from ..verify.saved import read

    report = verify(read(Path(path)), count=count)
    if as_json:
        print(json.dumps(document(report), indent=2))
    else:
        say(text(report))
    if report.refuted:
        return REFUTED
    return VERIFIED if report.verified else BAD_FILE


def document(report: Report) -> dict[str, object]:
    """Return what ``shardproof verify --json`` prints."""
    return {
        "schema": VERIFICATION,
        "verified": report.verified,
        "refuted": report.refuted,
        "checks": [
            {"name": c.name, "result": c.result, "details": list(c.details)}
            for c in report.checks
        ],
    }


def text(report: Report) -> str:
    """Write each claim and what came out."""
    lines = []
    for check in report.checks:
        lines.append(f"{check.name}: {check.result}")
        lines += [f"  {detail}" for detail in check.details]
    end = "not everything here can be checked"
    if report.refuted:
        end = "refuted"
    elif report.verified:
        end = "verified"
    return "\n".join((*lines, end))
