"""Errors of projected step times by group: median, 90th percentile, bias, order."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .truth import Row
    from .validation_predict import Predicted

#: Median and 90th percentile that a group must not exceed: the drift gate, the
#: figures of the shipped profiles with a margin of a quarter.
GATE = {
    "dgxc jax": (0.046, 0.141),
    "dgxc pretrain bf16": (0.032, 0.105),
    "dgxc pretrain fp8": (0.055, 0.163),
    "llm-foundry": (0.033, 0.164),
    "maxtext amd": (0.097, 0.301),
    "nemo blackwell": (0.102, 0.33),
    "nemo hopper": (0.056, 0.179),
    "nemo moe": (0.153, 0.482),
    "playbook 8": (0.116, 0.319),
    "playbook many": (0.192, 0.615),
    "sc21 + korthikanti": (0.027, 0.092),
    "simumax b200": (0.056, 0.133),
    "torchtitan": (0.059, 0.337),
    "vtrain multi": (0.056, 0.191),
    "vtrain single": (0.066, 0.203),
}
#: Rows of one model, machine and batch that Kendall's tau needs.
_LEAST = 4


def board(found: Sequence[Predicted]) -> dict[str, dict[str, Any]]:
    """Return the errors by source, device, model and framework.

    Returns
    -------
    dict
        By kind of group and name, the figures of the rows that are kept and of every
        row with a measurement and a prediction.
    """
    kinds: dict[str, Callable[[Predicted], str]] = {
        "source": lambda one: one.group,
        "device": _device,
        "model": lambda one: one.family,
        "framework": lambda one: one.entry.setting.stack if one.entry.setting else "",
    }
    return {kind: _groups(found, name) for kind, name in kinds.items()}


def _device(one: Predicted) -> str:
    return one.entry.setting.problem.cluster.device.name if one.entry.setting else ""


def _groups(
    found: Sequence[Predicted], name: Callable[[Predicted], str]
) -> dict[str, Any]:
    groups: dict[str, list[Predicted]] = defaultdict(list)
    for one in found:
        if one.error is not None and "failed" not in one.entry.excluded:
            groups[name(one)].append(one)
    return {
        key: {
            "kept": figures([one for one in rows if one.kept]),
            "nothing excluded": figures(rows),
            "left_out_share": _share(rows),
            "peer": _peer([one for one in rows if one.kept]),
        }
        for key, rows in sorted(groups.items())
    }


def _share(rows: Sequence[Predicted]) -> float:
    scope = [one for one in rows if one.in_scope]
    return 1 - sum(one.kept for one in scope) / len(scope) if scope else 0.0


def _peer(rows: Sequence[Predicted]) -> dict[str, Any] | None:
    """Return the errors of another tool's printed predictions of the same rows."""
    errors = []
    for one in rows:
        seconds = peer_seconds(one.entry.row)
        if seconds is not None:
            errors.append(seconds / _seconds(one) - 1)
    if not errors:
        return None
    return {
        "rows": len(errors),
        "median": float(np.median(np.abs(errors))),
        "p90": float(np.percentile(np.abs(errors), 90)),
        "bias": float(np.median(errors)),
    }


def peer_seconds(row: Row) -> float | None:
    """Return the step time that another tool predicts where the source prints one."""
    try:
        said = json.loads(row.text("tool_predictions") or "[]")
        for entry in said:
            if "step time ms" in entry["name"]:
                return float(entry["value"]) / 1e3
    except (ValueError, TypeError, KeyError):
        return None
    return None


def figures(rows: Sequence[Predicted]) -> dict[str, Any]:
    """Return the errors of some rows: fractions of the measured step time."""
    errors = np.array([one.error for one in rows], float)
    if not len(errors):
        empty = dict.fromkeys(("median", "p90", "bias", "tau", "covered"))
        return {"rows": 0, **empty}
    size = np.abs(errors)
    return {
        "rows": len(rows),
        "median": float(np.median(size)),
        "p90": float(np.percentile(size, 90)),
        "bias": float(np.median(errors)),
        "tau": _tau(rows),
        "covered": float(np.mean([_covered(one) for one in rows])),
    }


def _covered(one: Predicted) -> bool:
    assert one.band is not None
    assert one.entry.setting is not None
    measured = one.entry.setting.measured.step_time_s
    return measured is not None and one.band[0] <= measured <= one.band[1]


def _tau(rows: Sequence[Predicted]) -> float | None:
    """Return the mean of Kendall's tau within runs of one model, machine and batch."""
    groups: dict[object, list[Predicted]] = defaultdict(list)
    for one in rows:
        assert one.entry.setting is not None
        problem = one.entry.setting.problem
        key = (
            one.family,
            problem.cluster.name,
            problem.training,
            one.entry.setting.run,
        )
        groups[key].append(one)
    taus = [_kendall(group) for group in groups.values() if len(group) >= _LEAST]
    known = [tau for tau in taus if tau is not None]
    return float(np.mean(known)) if known else None


def _kendall(rows: Sequence[Predicted]) -> float | None:
    """Return Kendall's tau-b, None where either order is all ties."""
    measured = np.array([_seconds(one) for one in rows])
    projected = np.array([one.step_time_s for one in rows], float)
    upper = np.triu_indices(len(rows), 1)
    a = np.sign(measured[:, None] - measured)[upper]
    b = np.sign(projected[:, None] - projected)[upper]
    scale = float(np.sqrt((a != 0).sum() * (b != 0).sum()))
    return float((a * b).sum()) / scale if scale else None


def _seconds(one: Predicted) -> float:
    assert one.entry.setting is not None
    assert one.entry.setting.measured.step_time_s is not None
    return one.entry.setting.measured.step_time_s


def missed(groups: dict[str, Any]) -> list[str]:
    """Return a sentence for each source that misses its gate."""
    found = []
    for name, bars in GATE.items():
        kept = groups["source"].get(name, {}).get("kept", {"rows": 0})
        if not kept["rows"]:
            continue
        for label, bar in zip(("median", "p90"), bars, strict=True):
            if kept[label] > bar:
                found.append(f"{name}: {label} {kept[label]:.1%} above {bar:.1%}")
    return found
