"""Fit of the stack layers: ``python -m shardproof.benchmarks.validation_fit``.

For each stack of ``validation_stacks`` the kept rows of its groups are fitted, whole
model families are left out in turn, and the layer is written with the figures of what
was left out and the band that 90 % of them lie in.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration.stack import Sample, left_out, predict
from ..calibration.stack.factors import changed
from ..models import catalogue
from ..models.profiles import Layer, load_layer
from ..models.profiles.layer_file import text_of
from .truth import entries, read
from .validation import DATA
from .validation_groups import family_of, group_of
from .validation_profiles import base_profile
from .validation_stacks import STACKS, era_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .truth import Entry
    from .validation_stacks import Stack

#: Share of what was left out that the band covers, and its bounds.
_COVERED, _LEAST, _MOST = 0.9, 0.02, 0.9


def samples_of(stack: Stack, table: Sequence[Entry]) -> list[Sample]:
    """Return the measured steps that a stack is fitted to."""
    found = []
    for entry in table:
        one = entry.setting
        if one is None or entry.excluded or one.measured.step_time_s is None:
            continue
        mixed = one.problem.architecture.is_moe
        if group_of(one) not in stack.groups or stack.moe not in (None, mixed):
            continue
        if one.problem.cluster.device.name not in stack.devices:
            continue
        if stack.era not in ("", era_of(one.release)):
            continue
        found.append(
            Sample(
                problem=one.problem,
                layout=one.layout,
                run=one.run,
                seconds=one.measured.step_time_s,
                family=family_of(entry.row),
                source=group_of(one),
            )
        )
    return found


def fitted(stack: Stack, table: Sequence[Entry]) -> tuple[Layer, dict[str, Any]]:
    """Fit one stack.

    Returns
    -------
    tuple
        Its layer, and the errors by group of the fit and of what it left out.
    """
    samples = samples_of(stack, table)
    chosen = samples[:: stack.every]
    profile = base_profile(catalogue.device(stack.device))
    profile = changed(profile, dict(stack.given))
    values, unseen = left_out(chosen, profile, stack.factors)
    measured = np.array([s.seconds for s in chosen])
    band = _band(measured / unseen - 1)
    final = changed(profile, values)
    seen = predict(samples, lambda _: final)
    figures = {
        "seen": _by_source(samples, seen),
        "family left out": _by_source(chosen, unseen),
    }
    return _layer(stack, profile.layers["stack"].name, values, band, figures), figures


def _band(errors: Any) -> float:
    """Return the half-width that covers the share asked of exchangeable errors."""
    size = np.sort(np.abs(errors))
    place = min(len(size) - 1, int(np.ceil(_COVERED * (len(size) + 1))) - 1)
    return float(np.clip(size[place], _LEAST, _MOST))


def _by_source(samples: Sequence[Sample], seconds: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for source in dict.fromkeys(s.source for s in samples):
        errors = np.array(
            [
                t / s.seconds - 1
                for s, t in zip(samples, seconds, strict=True)
                if s.source == source
            ]
        )
        found[source] = {
            "rows": len(errors),
            "median": round(float(np.median(np.abs(errors))), 4),
            "p90": round(float(np.percentile(np.abs(errors), 90)), 4),
            "bias": round(float(np.median(errors)), 4),
        }
    return found


def _layer(
    stack: Stack,
    base: str,
    values: dict[str, float],
    band: float,
    figures: dict[str, Any],
) -> Layer:
    prior = load_layer("stack", base)
    said = f"fitted to the published steps of {', '.join(stack.groups)}"
    names = _spread_out(values, stack.device)
    names |= dict(stack.given)
    new = {n: float(f"{v:.4g}") for n, v in names.items()} | {"band": round(band, 4)}
    sources = dict(prior.sources) | dict.fromkeys(new, said)
    sources |= dict.fromkeys(dict(stack.given), "the stack's own code")
    rows = sum(found["rows"] for found in figures["seen"].values())
    sources["band"] = f"{_COVERED:.0%} of the steps of model families left out"
    return replace(
        prior,
        name=stack.name,
        calibrated=True,
        factors={**prior.factors, **new},
        sources=sources,
        provenance=({"source": said, "rows": rows},),
        left_out=figures["family left out"],
    )


def _spread_out(values: dict[str, float], device: str) -> dict[str, float]:
    """Name a factor of every product format by each format that the profile has."""
    found: dict[str, float] = {}
    for name, value in values.items():
        section, *_, field = name.split(".")
        if section == "gemm":
            formats = base_profile(catalogue.device(device)).gemm
            found |= {f"gemm.{key}.{field}": value for key in formats}
        else:
            found[name] = value
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Fit the stacks asked for and write their layers.

    Parameters
    ----------
    words
        The command line, that of the process if absent.
    """
    parser = argparse.ArgumentParser(prog="validation_fit")
    parser.add_argument("--data", type=Path, default=DATA, help="table of runs, CSV")
    parser.add_argument("--stack", default="", help="only stacks whose name has this")
    parser.add_argument("--out", type=Path, help="folder for the layers")
    asked = parser.parse_args(words)
    table = entries(read(asked.data))
    for stack in STACKS:
        if asked.stack not in stack.name:
            continue
        layer, figures = fitted(stack, table)
        print(f"{stack.name}: band {layer.factors['band']:.3f}")
        print("  " + ", ".join(f"{n}={layer.factors[n]}" for n in stack.factors))
        for kind, groups in figures.items():
            for source, found in groups.items():
                print(f"  {kind:<16} {source:<24} {found}", flush=True)
        if asked.out:
            (asked.out / f"{stack.name}.json").write_text(text_of(layer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
