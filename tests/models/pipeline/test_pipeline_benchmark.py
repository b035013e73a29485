from shardproof.benchmarks.pipeline import PUBLISHED_IDLE, ideal_idle, rates


def test_published_ideal_idle_is_reproduced():
    assert [round(ideal_idle(16, v, 16), 1) for v, *_ in PUBLISHED_IDLE] == [
        ideal for _, ideal, _ in PUBLISHED_IDLE
    ]


def test_rate_of_one_core():
    """A tenth of the bar of 2,000 a second, as this machine may be busy."""
    assert rates(256)["whole order"] >= 200
