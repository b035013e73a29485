"""What ``bench verdict`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def print_report(found: Mapping[str, Any]) -> None:
    """Print agreement with megatron-core by rule and by stage, and what is left."""
    width = max(len(row["id"]) for row in found["rules"])
    print(f"{'rule':<{width}}  {'where':<13} illegal  alone      legal")
    for row in found["rules"]:
        bad, good = row["illegal"], row["legal"]
        print(
            f"{row['id']:<{width}}  {row['where']:<13} "
            f"{bad['agree']:>3}/{bad['of']:<3}  {bad['alone']:>5}    "
            f"{good['agree']:>3}/{good['of']:<3}"
        )
    print("\nstage that refused: a rule of it broken too, of how many")
    for stage, count in found["stages"].items():
        print(f"{stage:<16} {count['agree']:>6} of {count['of']:>6}")
    drawn, every = found["drawn"], found["all"]
    print(
        f"\ndrawn over all axes: {drawn['agree']:,} of {drawn['of']:,}, of them "
        f"{drawn['legal']:,} legal\nsteps run: {found['steps']:,}\n"
        f"all: {every['agree']:,} of {every['of']:,} agree"
    )
    names = ", ".join(f"{k} {v[:12]}" for k, v in found["asked"].items())
    print(f"asked: {names}")
    _print_unchecked(found["not_machine_checked"])
    print(f"left without a reason: {', '.join(found['unexplained']) or 'none'}")


def _print_unchecked(rows: Sequence[Mapping[str, Any]]) -> None:
    """List what no machine is asked about by its reason, with the source."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        reason = f"{row['checker']}, {row['where']}"
        if row["restated"]:
            reason = "restated, not run: the launcher"
        elif row["kind"] != "hard":
            reason = row["kind"]
        groups.setdefault(reason, []).append(row)
    print(f"\nnot machine-checked: {len(rows)} rules")
    for reason, listed in sorted(groups.items()):
        print(f"{reason} ({len(listed)})")
        for row in listed:
            print(f"  {row['id']:<26} {row['source']}")


def print_other(dialect: str, found: Mapping[str, Any]) -> None:
    """Print agreement with another framework by rule."""
    print(f"\n{dialect}: a rule, illegal and legal configurations that agree")
    for row in found["rules"]:
        bad, good = row["illegal"], row["legal"]
        print(
            f"{row['id']:<26}  {row['where']:<13} {bad['agree']:>3}/{bad['of']:<3} "
            f"{good['agree']:>3}/{good['of']:<3}"
        )
    drawn, every = found["drawn"], found["all"]
    names = ", ".join(f"{k} {v[:12]}" for k, v in found["asked"].items())
    print(
        f"drawn: {drawn['agree']:,} of {drawn['of']:,}, of them {drawn['legal']:,} "
        f"legal; all: {every['agree']:,} of {every['of']:,} agree\nasked: {names}"
    )
    for row in found["not_machine_checked"]:
        print(f"  not asked: {row['id']:<18} {row['checker']}, {row['source']}")
