"""``shardproof catalogue``: lists by kind, entries whole, users' own entries."""

import json
from pathlib import Path

import pytest

from shardproof.interfaces.cli import main
from shardproof.models.catalogue import KINDS, names


def output(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["catalogue", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_lists_its_entries_alone(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text, _ = output(capsys, kind, "--json")
    document = json.loads(text)
    assert code == 0
    assert set(document) == {"schema", kind}
    assert {entry["name"] for entry in document[kind]} == set(names(kind))  # type: ignore[arg-type]
    code, text, _ = output(capsys, kind)
    assert code == 0
    assert all(name in text for name in names(kind))  # type: ignore[arg-type]


def test_a_kind_and_a_name_show_one_entry(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = output(capsys, "devices", "h100")
    assert code == 0
    assert "hbm_bytes" in text
    code, _, error = output(capsys, "models", "h100")
    assert code == 2
    assert "unknown model 'h100'" in error


def test_a_users_device_is_added_found_and_planned_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SHARDPROOF_HOME", str(tmp_path / "home"))
    _, text, _ = output(capsys, "devices", "h100")
    start = text.index("kind:") if "kind:" in text else text.index("name:")
    copy = text[start:].replace("name: h100\n", "name: my-h100\n", 1)
    file = tmp_path / "my-h100.yaml"
    file.write_text(copy)
    code, text, error = output(capsys, "add", str(file))
    assert (code, error) == (0, "")
    assert "my-h100" in text
    code, text, _ = output(capsys, "devices")
    assert code == 0
    assert "my-h100" in text
    question = ["--cluster", "1x8:my-h100", "--seq-len", "2048", "--global-batch", "8"]
    assert main(["plan", "llama-3.2-1b", *question, "--top", "1"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add",), "catalogue takes nothing, a kind"),
        (("add", "no-such-file.yaml"), "no-such-file.yaml"),
        (("models", "a", "b"), "catalogue takes nothing, a kind"),
        (("h10",), "did you mean h100"),
    ],
)
def test_wrong_words_are_one_sentence(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text, error = output(capsys, *words)
    assert code == 2
    assert text == ""
    assert message in error
    assert error.count("\n") == 1
