"""The fit of one kernel: a law, then the surface of what the law leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ...models.profiles.surfaces.grid import STEP, Grid
from ...models.profiles.surfaces.kernel import Kernel
from .monotone import rising
from .parameters import fit_parameters
from .penalised import solve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...models.profiles.surfaces.law import Floats, Law, Machine
    from ..rows import Rows


@dataclass(frozen=True, kw_only=True)
class Form:
    """One way to describe a kernel.

    Attributes
    ----------
    law
        The formula.
    knots
        Of the surface by coordinate; without any the law stands alone.
    prices
        Of the surface's roughness by coordinate.
    """

    law: Law
    knots: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Law, and whether a surface corrects it."""
        return f"{self.law.name}{'+surface' if self.knots else ''}"


def fit_kernel(
    form: Form, machine: Machine, rows: Rows, parameters: Floats | None = None
) -> Kernel:
    """Fit a kernel of one form to rows; ``parameters`` are those of an earlier fit."""
    law = form.law
    if parameters is None:
        parameters = fit_parameters(law, machine, rows)
    sizes = {name: rows.sizes[name] for name in law.sizes}
    varied = {name: v for name, v in sizes.items() if v.min() < v.max()}
    fixed = {name: float(v[0]) for name, v in sizes.items() if name not in varied}
    domain = {n: (float(v.min()), float(v.max())) for n, v in varied.items()}
    surface, steps = None, None
    if form.knots:
        surface, steps = _correction(form, machine, rows, parameters)
    return Kernel(
        law=law,
        machine=machine,
        parameters=parameters,
        fixed=fixed,
        domain=domain,
        surface=surface,
        steps=steps,
    )


def _correction(
    form: Form, machine: Machine, rows: Rows, parameters: Floats
) -> tuple[Grid, Floats | None]:
    law = form.law
    left = np.log(rows.seconds / law.seconds(parameters, rows.sizes, machine))
    coordinates = law.coordinates(rows.sizes)
    axes = {name: _used(form.knots[name], coordinates[name]) for name in form.knots}
    covariates = law.steps(rows.sizes, machine) if law.steps else None
    values, steps = solve(
        [np.log(coordinates[name]) for name in axes],
        left,
        [np.log(knots) for knots in axes.values()],
        [form.prices[name] for name in axes],
        covariates,
    )
    grid = Grid(axes, values)
    for name in law.rising:
        if len(axes[name]) > 1:
            grid = _risen(grid, name, law, machine, rows, parameters)
    if steps is not None:
        steps = np.round(steps, 3)
    return Grid(axes, np.round(grid.values / STEP) * STEP), steps


def _used(knots: tuple[float, ...], values: Floats) -> Floats:
    """Return the ends of the points, and each knot that is nearest to one."""
    least, most = float(values.min()), float(values.max())
    known = np.array(sorted({*knots, least, most}))
    known = known[(known >= least) & (known <= most)]
    logs = np.log(known)
    nearest = np.searchsorted((logs[1:] + logs[:-1]) / 2, np.log(np.unique(values)))
    return np.asarray(known[np.unique([0, *nearest, len(known) - 1])])


def _risen(
    grid: Grid,
    axis: str,
    law: Law,
    machine: Machine,
    rows: Rows,
    parameters: Floats,
) -> Grid:
    """Correct a surface so that times at its knots do not fall along an axis."""
    mesh = np.meshgrid(*grid.axes.values(), indexing="ij")
    sizes = {name: np.full(mesh[0].size, v[0]) for name, v in rows.sizes.items()}
    sizes |= {name: m.ravel() for name, m in zip(grid.axes, mesh, strict=True)}
    base = np.log(law.seconds(parameters, sizes, machine)).reshape(mesh[0].shape)
    total = rising(base + grid.values, list(grid.axes).index(axis))
    return Grid(grid.axes, total - base)
