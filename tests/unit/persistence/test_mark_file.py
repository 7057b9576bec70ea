"""The mark of reserved numbers beside the database."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from tests.contract.mounts import small_file_system

from rekindle.persistence.mark_file import MarkFile


def test_a_mark_is_found_by_the_next_run_until_the_store_has_all_numbers(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    first = MarkFile(path)
    assert (first.read(), first.raise_to(300), first.raise_to(200)) == (0, True, True)
    second = MarkFile(path)
    assert second.read() == 300
    second.clear()
    assert MarkFile(path).read() == 0
    assert path.stat().st_mode & 0o077 == 0


def test_a_full_disk_does_not_prevent_a_mark(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "mount", "1m") as mount:
        mark = MarkFile(mount / "mark")
        mark.clear()  # by the first commit
        with suppress(OSError), (mount / "ballast").open("wb", buffering=0) as ballast:
            while ballast.write(b"\0" * 4096):
                pass
        assert mark.raise_to(300)
        assert MarkFile(mount / "mark").read() == 300


@pytest.mark.parametrize("content", ["", "nonsense", "-"])
def test_what_is_not_a_mark_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / "mark").write_text(content)
    assert MarkFile(tmp_path / "mark").read() == 0


def test_a_link_is_neither_read_nor_written(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("7")
    (tmp_path / "mark").symlink_to(tmp_path / "other")
    mark = MarkFile(tmp_path / "mark")
    assert (mark.read(), mark.raise_to(300)) == (0, False)
    assert (tmp_path / "other").read_text() == "7"
