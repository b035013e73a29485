"""Fit a kernel in the form that predicts left-out rows best, and say how well."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .bands import FINE, coverage, fit_band
from .forms import forms_of, size_groups
from .kernels import fit_kernel
from .left_out import boxes, by_fold, by_region, summary

if TYPE_CHECKING:
    from ...models.profiles.surfaces.kernel import Kernel
    from ...models.profiles.surfaces.law import Machine
    from ..rows import Rows
    from .kernels import Form
    from .left_out import LeftOut

#: With fewer rows each is left out of many small folds, and there is no region.
_FEW = 400
_MANY_FOLDS = 10


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
    compared = {form.name: _compared(form, machine, rows) for form in forms}
    chosen = min(forms, key=lambda form: compared[form.name])
    folds = _MANY_FOLDS if len(rows) < _FEW else 4
    random = by_fold(chosen, machine, rows, folds)
    found: dict[str, Any] = {
        "form": chosen.name,
        "forms": {name: round(100 * error, 2) for name, error in compared.items()},
        "random": _by_size(rows, random),
    }
    if _has_region(chosen, rows):
        found["region"] = _by_size(rows, by_region(chosen, machine, rows))
    coordinates = chosen.law.coordinates(rows.at(random.rows).sizes)
    kernel = fit_kernel(chosen, machine, rows)
    band = fit_band(coordinates, random.misses)
    if len(rows) >= _FEW:
        found["band"] = coverage(coordinates, random.misses)
    return Judged(replace(kernel, band=band), found)


def _compared(form: Form, machine: Machine, rows: Rows) -> float:
    """Return the median error over one fold and the regions."""
    errors = [by_fold(form, machine, rows, only=0).errors]
    if _has_region(form, rows):
        errors.append(by_region(form, machine, rows).errors)
    return float(np.median(np.concatenate(errors)))


def _has_region(form: Form, rows: Rows) -> bool:
    return len(rows) >= _FEW and int(boxes(form, rows).sum()) >= 20


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
