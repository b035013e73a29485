"""Settings of all tests, and a seeded sample of the slow ones."""

from __future__ import annotations

import random

import pytest
from hypothesis import settings

# A machine under load is no reason for a property to fail. With CI=true Hypothesis
# itself repeats the same examples in every run.
settings.register_profile("unhurried", parent=settings(), deadline=None)
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("shardproof")
    group.addoption(
        "--slow-sample",
        type=int,
        metavar="N",
        help="run the tests that -m selects, but at most N slow ones of them",
    )
    group.addoption(
        "--sample-seed",
        default="0",
        metavar="TEXT",
        help="which ones: the same text always takes the same",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    number = config.getoption("--slow-sample")
    if number is None:
        return
    slow = sorted(i.nodeid for i in items if i.get_closest_marker("slow"))
    seed = config.getoption("--sample-seed")
    kept = set(random.Random(seed).sample(slow, min(number, len(slow))))
    dropped = [i for i in items if i.nodeid in set(slow) - kept]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [i for i in items if i not in dropped]
