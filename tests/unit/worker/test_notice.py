"""Named pipes that wake the workers of an SQLite file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rekindle.worker.handle import Interruption
from rekindle.worker.jobs.notice import SUFFIX, Notices, notify, remove_notices


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "rekindle.db")


@pytest.fixture
def never() -> int:
    return Interruption().fileno()


def test_a_notice_reaches_a_worker_of_that_queue_only(database: str, never: int) -> None:
    tag, mail = Notices(database, ["tag"]), Notices(database, ["mail"])
    notify(database, ["tag"])
    assert not mail.wait(0, never)
    assert tag.wait(0, never)
    assert not tag.wait(0, never)


def test_one_notice_is_unread_at_a_time_however_many_jobs_were_added(database: str, never: int) -> None:
    notices = Notices(database, ["tag"])
    for _ in range(3):
        notify(database, ["tag"])
    assert notices.wait(0, never)
    assert not notices.wait(0, never)


def test_a_notice_that_was_taken_is_passed_on_once(database: str, never: int) -> None:
    first, second = Notices(database, ["tag"]), Notices(database, ["tag"])
    notify(database, ["tag"])
    assert first.wait(0, never)
    first.pass_on()
    assert second.wait(0, never)
    first.pass_on()
    assert not second.wait(0, never)


def test_a_notice_without_a_waiting_worker_creates_nothing(database: str, tmp_path: Path) -> None:
    notify(database, ["tag"])
    assert not list(tmp_path.iterdir())


def test_pipes_that_are_removed_are_noticed_and_nothing_else_is_removed(
    database: str, tmp_path: Path
) -> None:
    notices = Notices(database, ["tag", "mail"])
    (tmp_path / f"rekindle.db{SUFFIX}file").write_text("kept")
    assert notices.is_in_place()
    remove_notices(database)
    assert [path.name for path in tmp_path.iterdir()] == [f"rekindle.db{SUFFIX}file"]
    assert not notices.is_in_place()


def test_an_interruption_ends_the_wait_and_leaves_the_notice_to_others(database: str) -> None:
    interruption, notices = Interruption(), Notices(database, ["tag"])
    interruption.set()
    notify(database, ["tag"])
    assert not notices.wait(60, interruption.fileno())
    interruption.clear()
    assert notices.wait(0, interruption.fileno())


def test_a_pipe_is_private_and_a_link_or_a_file_in_its_place_is_not_used(
    database: str, tmp_path: Path, never: int
) -> None:
    Notices(database, ["tag"])
    assert os.stat(f"{database}{SUFFIX}tag").st_mode & 0o777 == 0o600
    (tmp_path / f"rekindle.db{SUFFIX}link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f"rekindle.db{SUFFIX}file").write_text("kept")
    for queue in ("link", "file"):
        notify(database, [queue])
        with pytest.raises(OSError, match=r"not a named pipe|symbolic links"):
            Notices(database, [queue])
    assert (tmp_path / f"rekindle.db{SUFFIX}file").read_text() == "kept"
