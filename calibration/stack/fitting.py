"""Robust least squares of a few factors with priors, and what it says of models unseen.

Minimised is the sum over samples of the soft absolute value of log(projected /
measured) over ``NOISE``, weighted so that sources count alike, plus the priors. The
factors are few, and priors hold those that the samples do not tell.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from .factors import FACTORS, changed
from .samples import Floats, predict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...models.profiles import Profile
    from .samples import Sample

#: Scatter of published steps of one configuration, relative: 2 to 8 % by source.
NOISE = 0.03
#: Samples of a source that weigh fully; more of them weigh as many.
_MOST = 60.0
#: Step of the slopes, in standard deviations of a prior.
_SLOPE = 0.05


def fit(
    samples: Sequence[Sample], profile: Profile, names: Sequence[str], rounds: int = 4
) -> dict[str, float]:
    """Return the values of some factors.

    Parameters
    ----------
    samples
        Measured steps.
    profile
        Holds the priors.
    names
        Factors to fit, of ``FACTORS``.
    rounds
        Gauss-Newton steps at most.
    """
    prior, x = _start(profile, names)
    bounds = _bounds(names, prior)
    for _ in range(rounds):
        errors, slopes = _linear(samples, profile, names, x)
        new = _solve(samples, errors, slopes, names, x, prior, bounds)
        moved = float(np.abs(new - x).max())
        x = new
        if moved < 0.1:
            break
    return _read(names, x)


def left_out(
    samples: Sequence[Sample], profile: Profile, names: Sequence[str]
) -> tuple[dict[str, float], Floats]:
    """Fit everything, and predict every family by a fit that has not seen it.

    Returns
    -------
    tuple
        The factors of the whole fit, and the projected seconds of each sample by the
        fit without its family; a lone family is predicted by the priors.

    Notes
    -----
    A fit without a family starts from the whole fit and solves the same problem on
    the projection's slopes there; what it predicts is projected in full.
    """
    whole = fit(samples, profile, names)
    prior, _ = _start(profile, names)
    x = np.array([_write(n, whole[n]) for n in names])
    errors, slopes = _linear(samples, profile, names, x)
    found = np.empty(len(samples))
    for family in dict.fromkeys(s.family for s in samples):
        inside = [i for i, s in enumerate(samples) if s.family == family]
        rest = [i for i, s in enumerate(samples) if s.family != family]
        candidate = profile
        if rest:
            some = [samples[i] for i in rest]
            bounds = _bounds(names, prior)
            args = (some, errors[rest], slopes[rest], names, x, prior, bounds)
            candidate = changed(profile, _read(names, _solve(*args)))
        found[inside] = predict([samples[i] for i in inside], _always(candidate))
    return whole, found


def _always(profile: Profile) -> Callable[[Sample], Profile]:
    return lambda _: profile


def _start(profile: Profile, names: Sequence[str]) -> tuple[dict[str, float], Floats]:
    factors = profile.factors()
    prior = {name: factors[name] for name in names}
    x = np.array([_write(n, prior[n]) for n in names])
    bounds = _bounds(names, prior)
    return prior, np.clip(x, bounds[0], bounds[1])


def _linear(
    samples: Sequence[Sample], profile: Profile, names: Sequence[str], x: Floats
) -> tuple[Floats, Floats]:
    """Return log errors at some factors, and their slopes, shape [n, factors]."""
    measured = np.log([s.seconds for s in samples])

    def errors(y: Floats) -> Floats:
        candidate = changed(profile, _read(names, y))
        found: Floats = np.log(predict(samples, _always(candidate))) - measured
        return found

    here, slopes = errors(x), []
    for i in range(len(names)):
        step = np.zeros(len(names))
        step[i] = _SLOPE if x[i] + _SLOPE <= _range(names[i], x[i])[1] else -_SLOPE
        slopes.append((errors(x + step) - here) / step[i])
    return here, np.array(slopes).T


def _solve(
    samples: Sequence[Sample],
    errors: Floats,
    slopes: Floats,
    names: Sequence[str],
    x: Floats,
    prior: Mapping[str, float],
    bounds: Floats,
) -> Floats:
    """Minimise the robust sum over the linear projection, within a step of ``x``."""
    from scipy.optimize import least_squares

    weight = _weights(samples)

    def residuals(y: Floats) -> Floats:
        scaled = (errors + slopes @ (y - x)) / NOISE
        soft = np.sqrt(2 * (np.sqrt(1 + scaled * scaled) - 1))
        return np.concatenate([weight * soft, _pull(names, prior, y)])

    low, high = np.maximum(bounds[0], x - 1.5), np.minimum(bounds[1], x + 1.5)
    begin = np.clip(x, low + 1e-9, high - 1e-9)
    found: Floats = least_squares(residuals, begin, bounds=(low, high)).x
    return found


def _bounds(names: Sequence[str], prior: Mapping[str, float]) -> Floats:
    return np.array([_range(n, _write(n, prior[n])) for n in names]).T


def _range(name: str, written: float) -> tuple[float, float]:
    """Return a factor's bounds as they are written, a value outside them included."""
    factor = FACTORS[name]
    ends = _write(name, factor.least), _write(name, factor.most)
    return min(ends[0], written) - 1e-6, max(ends[1], written) + 1e-6


def _weights(samples: Sequence[Sample]) -> Floats:
    count = Counter(s.source for s in samples)
    return np.array([min(1.0, _MOST / count[s.source]) ** 0.5 for s in samples])


def _write(name: str, value: float) -> float:
    factor = FACTORS[name]
    if factor.additive:
        return value / factor.spread
    return float(np.log(value)) / factor.spread


def _read(names: Sequence[str], x: Floats) -> dict[str, float]:
    found = {}
    for name, written in zip(names, x, strict=True):
        factor = FACTORS[name]
        value = written * factor.spread
        found[name] = float(value if factor.additive else np.exp(value))
        found[name] = min(max(found[name], factor.least), factor.most)
    return found


def _pull(names: Sequence[str], prior: Mapping[str, float], x: Floats) -> Floats:
    return np.array([w - _write(n, prior[n]) for n, w in zip(names, x, strict=True)])
