"""Hypothesis strategies: shapes that each schedule can run, and stage times."""

import numpy as np
from hypothesis import strategies as st

from shardproof.models.pipeline.schedules import NAMES

ONE_CHUNK = ("gpipe", "1f1b", "zb-h1", "zb-h2")


@st.composite
def shapes(draw, names=NAMES, most_ranks=8, most_micros=24, least_micros=1, extra=True):
    """Draw schedule, pp, vpp, m, group and extra warm-up."""
    name = draw(st.sampled_from(names))
    p = draw(st.integers(2, most_ranks))
    if name == "interleaved":
        v = draw(st.integers(1, 4))
        g = draw(st.integers(p, p + 3))
        full = draw(st.integers(1, max(1, most_micros // g)))
        rest = draw(st.sampled_from([0, *range(p, g)]))
        return name, p, v, full * g + rest, g, draw(st.integers(0, int(extra)))
    v = 1 if name in (*ONE_CHUNK, "dualpipe") else 2
    least = {"zbv": 2 * p - 1, "dualpipe": 2 * p, "dualpipev": 2 * p}.get(
        name, least_micros
    )
    m = draw(st.integers(least, least + most_micros))
    if name == "dualpipe":
        p, m = p + p % 2, m + m % 2 + 2 * (p % 2)
    return name, p, v, m, None, 0


def stage_times(rng, n, p, v):
    """Draw times of n configurations, some equal, some far apart."""
    spread = rng.choice([0.0, 0.05, 0.5, 0.95], size=(n, 1, 1))
    return 1 + spread * rng.uniform(-1, 1, (n, p, v))


def constant(value, n, p, v):
    return np.full((n, p, v), float(value))
