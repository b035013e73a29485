"""The page of an answer: whole, offline, escaped, drawn by a real browser."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from shardproof.interfaces.cli import main
from shardproof.interfaces.document import problem
from shardproof.interfaces.saved import load_answer

ASK = (
    "llama-3.1-8b --cluster 1x8:a100-40 --seq-len 8192 --global-batch 64 "
    "--pin tp=4 --pin pp=2 --json"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answer")
    assert main(["plan", *ASK.split(), "--out", str(folder)]) == 0
    return folder / "answer.json"


@pytest.fixture(scope="module")
def page(answer: Path) -> Path:
    pytest.importorskip("plotly", reason="the report extra is not installed")
    out = answer.parent / "report.html"
    assert main(["report", str(answer), "--out", str(out)]) == 0
    return out


def test_a_saved_answer_reads_back_as_what_it_was(answer: Path) -> None:
    saved = load_answer(answer)
    written = json.loads(answer.read_text())
    assert json.loads(json.dumps(problem(saved.problem))) == written["problem"]
    assert [x.labels() for x in saved.layouts] == [
        a["layout"] for a in written["answers"]
    ]


def test_a_trace_holds_every_slot_once_and_no_rank_does_two_things(
    answer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = answer.parent / "trace.json"
    assert main(["report", str(answer), "--trace", str(out)]) == 0
    layout = load_answer(answer).layouts[0]
    events = [e for e in json.loads(out.read_text())["traceEvents"] if e["ph"] == "X"]
    # A forward and a backward of every micro-batch in every chunk.
    assert len(events) == 2 * layout.m * layout.vpp * layout.pp
    for rank in range(layout.pp):
        mine = sorted((e["ts"], e["dur"]) for e in events if e["tid"] == rank)
        for (start, took), (following, _) in pairwise(mine):
            assert start + took <= following * (1 + 1e-12)


def test_the_page_is_small_and_asks_the_network_for_nothing(page: Path) -> None:
    class Links(HTMLParser):
        def handle_starttag(
            self, tag: str, attributes: list[tuple[str, str | None]]
        ) -> None:
            for name, value in attributes:
                assert name not in ("src", "srcset"), (tag, value)
                assert name != "href" or (value or "").startswith("data:")

    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) <= 6_000_000
    Links().feed(text)


def test_what_a_document_says_is_text_and_never_markup(
    answer: Path, tmp_path: Path
) -> None:
    pytest.importorskip("plotly", reason="the report extra is not installed")
    evil = "</script><script>document.title='owned'</script>"
    document = json.loads(answer.read_text())
    document["problem"]["architecture"]["name"] = evil
    document["certificate"]["profile"] = evil
    changed, out = tmp_path / "evil.json", tmp_path / "evil.html"
    changed.write_text(json.dumps(document))
    assert main(["report", str(changed), "--out", str(out)]) == 0
    assert "<script>document.title" not in out.read_text()


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("problem"),
        lambda d: d["answers"][0]["layout"].update(tp="many"),
        lambda d: d["problem"]["architecture"].update(hidden=None, kinds=3),
        lambda d: d.update(schema="another"),
    ],
)
def test_a_damaged_answer_is_refused_in_a_sentence(
    answer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: object
) -> None:
    document = json.loads(answer.read_text())
    damage(document)  # type: ignore[operator]
    changed = tmp_path / "damaged.json"
    changed.write_text(json.dumps(document))
    assert main(["report", str(changed), "--out", str(tmp_path / "x.html")]) == 2
    assert capsys.readouterr().err.startswith("shardproof: ")
    assert not (tmp_path / "x.html").exists()


@pytest.mark.skipif(CHROMIUM is None, reason="CHROMIUM IS NOT INSTALLED: not looked at")
def test_a_browser_draws_every_figure_without_errors_at_390_pixels(
    page: Path, tmp_path: Path
) -> None:
    # A frame of 390 pixels: a window cannot be made as narrow as a telephone.
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe id="p" src="{page.as_uri()}" width="390" height="800"></iframe>'
        "<script>onload=()=>setTimeout(()=>{const d=document.getElementById('p')"
        ".contentDocument;document.title=[d.documentElement.scrollWidth,"
        "d.querySelectorAll('.main-svg .plot, .main-svg .bglayer').length,"
        "d.querySelectorAll('.figure').length].join(' ')},3000)</script>"
    )
    done = subprocess.run(
        [
            str(CHROMIUM),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr",
            "--virtual-time-budget=20000",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            frame.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    errors = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert errors == []
    title = re.search(r"<title>(\d+) (\d+) (\d+)</title>", done.stdout)
    assert title, done.stdout[-500:]
    width, drawn, places = map(int, title.groups())
    assert width <= 390
    assert places == 4
    assert drawn >= places
