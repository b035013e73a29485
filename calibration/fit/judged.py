"""Fit a kernel in the form that predicts left-out rows best, and say how well."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .bands import FINE, coverage, fit_band
from .forms import forms_of, size_groups
from .kernels import fit_kernel
from .left_out import FOLDS, LeftOut, boxes, by_fold, by_region, by_value, summary

if TYPE_CHECKING:
    from ...models.profiles.surfaces.kernel import Kernel
    from ...models.profiles.surfaces.law import Machine
    from ..rows import Rows
    from .kernels import Form

#: With fewer rows each is left out of many small folds, and there is no region.
_FEW = 400
_MANY_FOLDS = 10
#: Regions with fewer rows say nothing.
_LEAST = 20


@dataclass(frozen=True, eq=False)
class Judged:
    """A fitted kernel with what it says of rows that it had not seen.

    Attributes
    ----------
    kernel
        Fitted to all rows, with its band.
    left_out
        ``forms``: median error of each form in percent; ``random`` and ``region``:
        count, median and 90th percentile by size class; ``band``: coverage in percent
        and width.
    """

    kernel: Kernel
    left_out: dict[str, Any]


def judge(rows: Rows, machine: Machine) -> Judged:
    """Choose a form by what is left out, fit it, and measure its errors and band."""
    rows = rows.ordered()
    forms = forms_of(rows.kernel)
    few = len(rows) < _FEW
    folds = _MANY_FOLDS if few else FOLDS
    looked = folds if few else 1
    tried = {form.name: _tried(form, machine, rows, folds, looked) for form in forms}
    compared = {
        name: float(np.median(np.concatenate([left.errors for left in parts])))
        for name, parts in tried.items()
    }
    chosen = min(forms, key=lambda form: compared[form.name])
    dealt, region = tried[chosen.name][:looked], tried[chosen.name][looked:]
    dealt += [
        by_fold(chosen, machine, rows, folds, fold) for fold in range(looked, folds)
    ]
    random = LeftOut(
        np.concatenate([left.rows for left in dealt]),
        np.concatenate([left.misses for left in dealt]),
    )
    found: dict[str, Any] = {
        "form": chosen.name,
        "forms": {name: round(100 * error, 2) for name, error in compared.items()},
        "random": _by_size(rows, random),
    }
    if region:
        found["region"] = _by_size(rows, region[0])
    elif few and chosen.knots and chosen.law.rising:
        size = chosen.law.rising[0]
        found["region"] = _by_size(rows, by_value(chosen, machine, rows, size))
    coordinates = chosen.law.coordinates(rows.at(random.rows).sizes)
    kernel = fit_kernel(chosen, machine, rows)
    band = fit_band(coordinates, random.misses)
    if len(rows) >= _FEW:
        found["band"] = coverage(coordinates, random.misses)
    return Judged(replace(kernel, band=band), found)


def _tried(
    form: Form, machine: Machine, rows: Rows, folds: int, looked: int
) -> list[LeftOut]:
    """Predict the first folds, and the regions where there are any."""
    found = [by_fold(form, machine, rows, folds, fold) for fold in range(looked)]
    if len(rows) >= _FEW and int(boxes(form, rows).sum()) >= _LEAST:
        found.append(by_region(form, machine, rows))
    return found


def _by_size(rows: Rows, left: LeftOut) -> dict[str, dict[str, float]]:
    errors = left.errors
    return {
        name: summary(errors[mask[left.rows]])
        for name, mask in size_groups(rows).items()
        if mask[left.rows].any()
    }


def document_of(kernel: Kernel) -> dict[str, Any]:
    """Return a kernel as a layer's file has it."""
    machine = kernel.machine
    found: dict[str, Any] = {
        "law": kernel.law.name,
        "machine": {
            "flops": machine.flops,
            "bandwidth": machine.bandwidth,
            "units": machine.units,
            "width": machine.width,
        },
        "parameters": {
            p.name: float(v)
            for p, v in zip(kernel.law.parameters, kernel.parameters, strict=True)
        },
        "fixed": dict(kernel.fixed),
        "domain": {name: list(ends) for name, ends in kernel.domain.items()},
    }
    if kernel.surface is not None:
        found["surface"] = kernel.surface.document()
    if kernel.steps is not None:
        found["steps"] = [float(v) for v in kernel.steps]
    if kernel.band is not None:
        found["band"] = kernel.band.document(FINE)
    return found
