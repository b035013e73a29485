"""Parameters of a law: least squares of logarithms, a robust loss, priors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ...models.profiles.surfaces.law import Floats, Law, Machine
    from ..rows import Rows

#: Relative error that a law is expected to have: the unit of the residuals.
SCALE = 0.1
#: Rows that a fit of parameters looks at.
SAMPLE = 3000
_DIGITS = 6


def fit_parameters(law: Law, machine: Machine, rows: Rows) -> Floats:
    """Fit a law's parameters to rows, to six significant digits.

    A prior counts as one more measurement of its parameter's logarithm.
    """
    from scipy.optimize import least_squares

    few = rows
    if len(rows) > SAMPLE:
        chosen = np.random.default_rng(0).choice(len(rows), SAMPLE, replace=False)
        few = rows.at(np.sort(chosen))
    measured = np.log(few.seconds)
    middle = np.log(law.priors)
    spread = np.array([p.spread for p in law.parameters])
    most = np.log(np.array([p.most for p in law.parameters]))

    def misses(logs: Floats) -> Floats:
        time = law.seconds(np.exp(logs), few.sizes, machine)
        return np.concatenate(
            [(np.log(time) - measured) / SCALE, (logs - middle) / spread]
        )

    least = np.log(np.array([p.least for p in law.parameters]))
    start = np.clip(middle, least + 1e-3, most - 1e-3)
    found = least_squares(
        misses,
        start,
        bounds=(least, most),
        loss="soft_l1",
        max_nfev=60,
    )
    return np.array([float(f"{v:.{_DIGITS}g}") for v in np.exp(found.x)])
