"""The commands of fronts, books and machines that do not exist."""

import json

import pytest

from shardproof.interfaces.cli import main
from shardproof.interfaces.quantity import values_of
from shardproof.models.errors import InputError

ASK = ["llama-3.1-8b", "--seq-len", "8192", "--global-batch", "64"]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main([*words, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        ("bytes", "80GiB..288GiB:3", (80 * 2**30, 184 * 2**30, 288 * 2**30)),
        ("bytes/s", "25..100GB/s:4", (25e9, 50e9, 75e9, 100e9)),
        ("bytes/s", "1TB/s", (1e12,)),
        ("s", "2us,3ms", (2e-6, 3e-3)),
        ("whole", "3..6", (3, 4, 5, 6)),
        ("", "1,1.5", (1.0, 1.5)),
    ],
)
def test_quantities(kind: str, text: str, values: tuple[float, ...]) -> None:
    assert values_of("x", kind, text) == pytest.approx(values)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bytes/s", "100GB"),
        ("bytes/s", "100..25GB/s"),
        ("whole", "1.5"),
        ("whole", "1..9:1"),
        ("s", "now"),
        ("bytes", "80GiB:4"),
        ("", "1e999"),
    ],
)
def test_quantities_that_are_none(kind: str, text: str) -> None:
    with pytest.raises(InputError):
        values_of("x", kind, text)


def test_more_of_a_resource_never_slows_the_plan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = run(
        capsys, "whatif", *ASK, "--cluster", "1x8:h100", "--vary",
        "device.hbm_bytes=30GiB..150GiB:3", "--vary",
        "fabric.scale_up_bandwidth=200GB/s,450GB/s",
    )  # fmt: skip
    speed = {
        tuple(case["values"].values()): case["tokens_per_s"]
        for case in found["cases"]  # type: ignore[attr-defined]
    }
    assert len(speed) == 6
    for (memory, link), rate in speed.items():
        for (more, faster), best in speed.items():
            if more >= memory and faster >= link:
                assert best >= rate * (1 - 1e-9)
    assert all(v >= -1e-9 for v in found["elasticities"].values())  # type: ignore[attr-defined]


def test_the_cheapest_machine_reaches_the_target_and_no_cheaper_one_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = run(
        capsys, "whatif", *ASK, "--cluster", "8x8:h100", "--vary",
        "cluster.nodes=1,2,4", "--target", "150000", "--price", "3",
    )  # fmt: skip
    cases, chosen = found["cases"], found["cheapest"]
    assert isinstance(cases, list)
    assert isinstance(chosen, int)
    assert cases[chosen]["tokens_per_s"] >= 150_000
    for case in cases:
        if case["values"]["cluster.nodes"] < cases[chosen]["values"]["cluster.nodes"]:
            assert case["tokens_per_s"] < 150_000


def test_a_page_of_the_book_is_what_plan_finds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    book = run(capsys, "book", *ASK, "--cluster", "4x8:h100", "--nodes", "1,3,4")
    pages = book["pages"]
    assert isinstance(pages, list)
    assert [p["nodes"] for p in pages] == [1, 3, 4]
    for page in pages:
        plan = ["plan", *ASK, "--cluster", f"{page['nodes']}x8:h100", "--top", "1"]
        code = main([*plan, "--json"])
        answer = json.loads(capsys.readouterr().out or "{}")
        if page["best"] is None:
            assert code != 0
        else:
            assert answer["answers"][0]["projection"] == page["best"]["projection"]


def test_a_tolerance_lets_odd_counts_train(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["book", *ASK, "--cluster", "3x8:h100", "--nodes", "3"]
    free = run(capsys, *words, "--batch-tolerance", "0.15")
    (page,) = free["pages"]  # type: ignore[misc]
    assert 64 * 0.85 <= page["global_batch"] <= 64 * 1.15
    assert page["best"] is not None


@pytest.mark.parametrize(
    "words",
    [
        ["pareto", "--objective", "memory"],
        ["pareto", "--price", "-1"],
        ["book", "--nodes", "0"],
        ["book", "--batch-tolerance", "0.9"],
        ["whatif"],
        ["whatif", "--vary", "device.colour=1"],
        ["whatif", "--vary", "device.hbm_bytes=0GiB"],
        ["whatif", "--vary", "cluster.nodes=1", "--vary", "cluster.nodes=2"],
        ["whatif", "--vary", "cluster.nodes=1..100000"],
    ],
)
def test_bad_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert main([words[0], *ASK, "--cluster", "1x8:h100", *words[1:]]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("shardproof: ")
    assert shown.err.count("\n") == 1
