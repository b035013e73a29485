"""Files are written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shardproof.interfaces.files import prepare, write
from shardproof.models.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    made = prepare(str(tmp_path / "a" / "b"))
    assert made is not None
    assert made.is_dir()
    assert not list(made.iterdir())


def test_a_file_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "answer.json"
    target.write_text("old")
    write(target, "new")
    assert target.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["answer.json"]


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a full disk destroys nothing and leaves nothing behind."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    target = tmp_path / "answer.json"
    target.write_text("old")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match="no space left"):
        write(target, "new")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["answer.json"]


@pytest.mark.parametrize("folder", ["", " ", "a\0b", "/proc/nowhere", "/dev/null/x"])
def test_unusable_folders_are_one_sentence(folder: str) -> None:
    with pytest.raises(InputError, match="--out must be a folder"):
        prepare(folder)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file exists"):
        prepare(str(tmp_path / "file"))


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "answer.json").mkdir()
    with pytest.raises(InputError, match="--out"):
        write(tmp_path / "answer.json", "new")
    assert len(list(tmp_path.iterdir())) == 1
