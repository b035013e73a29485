"""The pipeline simulator: ``python -m shardproof.benchmarks.pipeline``.

Prints how many configurations a second one core simulates, how far the bounds stay
below the simulation, the published idle shares, and what 2 and 3 ranks give, where
the published formulas of some schedules do not hold. Exits with 1 if a published
ideal idle share is missed or a bound exceeds the simulation.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from ..models.pipeline.bounds import step_time_bound
from ..models.pipeline.held import held
from ..models.pipeline.network import network
from ..models.pipeline.schedules import NAMES, order
from ..models.pipeline.steady import step_times
from ..models.pipeline.sweep import makespan, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..models.pipeline.arrays import Floats
    from ..models.pipeline.order import Order

#: Configurations a second on one core for 126 layers, 16 ranks, 2 chunks, m = 128.
RATE_BAR = 2000.0
#: MoE of 500B parameters on MI300X, pp 16, ep 8, m 16: v, ideal and measured idle in
#: per cent. Source: AMD-AGI/Primus examples/moe_package, README.md and
#: images/moe-500b-bubble-ratio.png (commit fd1eeab).
PUBLISHED_IDLE = ((1, 48.4, 54.4), (3, 23.8, 24.4), (6, 13.5, 14.5))
_TWO_CHUNKS = ("interleaved", "zbv", "v-half", "v-min", "dualpipev")


def layer_splits(rng: np.random.Generator, n: int) -> Floats:
    """Return forward times of 126 layers on 16 ranks of 2 chunks, shape [n, 16, 2].

    Each configuration shares the layers out differently, 3 to 5 a chunk, with an
    embedding and a head that take up to two layers' time.
    """
    layers = np.full((n, 32), 4)
    rows = np.arange(n)
    short, shorter, donor, taker = np.argsort(rng.random((n, 32)), axis=1)[:, :4].T
    layers[rows, short] -= 1
    layers[rows, shorter] -= 1
    layers[rows, donor] -= 1
    layers[rows, taker] += 1
    assert (layers.sum(axis=1) == 126).all()
    times = layers * rng.uniform(0.8e-3, 2e-3, (n, 1))
    times[:, 0] += rng.uniform(0, 1e-3, n)
    times[:, -1] += rng.uniform(0, 4e-3, n)
    return np.moveaxis(times.reshape(n, 2, 16), 1, 2)


def rates(n: int = 2048) -> dict[str, float]:
    """Measure configurations a CPU second: whole orders, few periods, bounds."""
    rng = np.random.default_rng(0)
    forward = layer_splits(rng, n)
    times = (forward, 2 * forward)
    plan = order("interleaved", 16, 2, 128)
    network(plan)
    runs: dict[str, Callable[[], Floats]] = {
        "whole order": lambda: makespan(plan, *times, p2p=1e-5),
        "few periods": lambda: step_times("interleaved", *times, 128, 1e-5),
        "bound": lambda: step_time_bound("interleaved", *times, 128, 1e-5),
    }
    found = {}
    for name, run in runs.items():
        start = time.process_time()
        run()
        found[name] = n / (time.process_time() - start)
    return found


def bound_gaps(n: int = 1000) -> dict[int, tuple[float, float, float]]:
    """Return for v = 1..4 the mean, largest and least share a bound falls short.

    Stages differ by up to 15 % around their mean, on 4, 8 and 16 ranks.
    """
    rng = np.random.default_rng(1)
    gaps = {}
    for v in (1, 2, 3, 4):
        shares: list[Floats] = []
        while sum(len(share) for share in shares) < n:
            p = int(rng.choice([4, 8, 16]))
            m = p * int(rng.integers(1, 9))
            name = "interleaved" if v > 1 else "1f1b"
            forward = rng.uniform(0.85, 1.15, (50, p, v))
            simulated = makespan(order(name, p, v, m), forward, 2 * forward)
            bound = step_time_bound(name, forward, 2 * forward, m)
            shares.append(1 - bound / simulated)
        all_shares = np.concatenate(shares)
        gaps[v] = (all_shares.mean(), all_shares.max(), all_shares.min())
    return gaps


def ideal_idle(pp: int, vpp: int, m: int) -> float:
    """Return the simulated share of idle time of equal stages, in per cent."""
    plan = order("interleaved" if vpp > 1 else "1f1b", pp, vpp, m)
    one = np.ones((1, pp, vpp))
    return 100 * float(simulate(plan, one, 2 * one).bubble[0])


def few_ranks(name: str, pp: int) -> tuple[float, int]:
    """Return idle in forward times of a chunk, and states held at the peak.

    F = B = W and 4 pp micro-batches.
    """
    plan = order(name, pp, 2 if name in _TWO_CHUNKS else 1, 4 * pp)
    one = np.ones((1, pp, plan.chunks))
    idle = simulate(plan, one, one, one).idle
    return float(idle.min()), _peak_states(plan)


def _peak_states(plan: Order) -> int:
    full, kept = held(plan)
    return int((full + kept).sum(axis=1).max())


def main(argv: Sequence[str] | None = None) -> int:
    """Print everything; return 1 if a published or proven value is missed."""
    prog = "shardproof bench pipeline"
    argparse.ArgumentParser(prog=prog, description=__doc__).parse_args(argv)
    good = True
    print("configurations a CPU second, 126 layers, pp 16, vpp 2, m 128:")
    for name, rate in rates().items():
        print(f"  {name:12} {rate:12,.0f}")
    print(f"  bar          {RATE_BAR:12,.0f}   (whole order)")

    print("bound below the simulation, stages within 15 %:")
    for v, (mean, most, least) in bound_gaps().items():
        good &= least > -1e-12
        print(f"  v {v}: {mean:7.2%} on average, {most:7.2%} at most")

    print("idle of MoE 500B, pp 16, m 16:   simulated  published ideal  measured")
    for v, published, measured in PUBLISHED_IDLE:
        share = ideal_idle(16, v, 16)
        good &= round(share, 1) == published
        print(
            f"  v {v}: {share:33.1f} % {published:14.1f} % {measured:7.1f} % "
            f"({measured - share:+.1f} points)"
        )

    print("few ranks, F = B = W, m = 4 pp:   idle in F, states held at the peak")
    for name in NAMES:
        cells = []
        for pp in (2, 3):
            if name == "dualpipe" and pp % 2:
                continue
            idle, states = few_ranks(name, pp)
            cells.append(f"pp {pp}: {idle:4.1f} F, {states:2d} held")
        print(f"  {name:12} {'   '.join(cells)}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
