"""The thread that writes log files, on real files; only the disk is made to fail or hang."""

from __future__ import annotations

import errno
import gzip
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.processes.waiting import eventually

from rekindle.actors import Command, WorkerSpec
from rekindle.actors.messages import LogInterrupted, LogResumed
from rekindle.actors.processes.logs import log_file, log_writer
from rekindle.actors.processes.logs.log_folder import LogFileError, check
from rekindle.actors.processes.logs.log_writer import LogWriter
from rekindle.actors.processes.logs.worker_log import LONGEST_LINE, WorkerLog
from rekindle.actors.processes.trusted_path import may_be_of_others
from rekindle.actors.spec.policies.log_policy import LogPolicy


class Logs:
    """A writer, and what it announced."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "web.log"
        self.writer = LogWriter()
        self.news: list[LogInterrupted | LogResumed] = []
        self.writer.announce = self.news.append

    def log(self, name: str = "web.log", generation: int = 1, **settings: object) -> WorkerLog:
        policy = LogPolicy(file=str(self.path.parent / name), **settings)  # type: ignore[arg-type]
        found = self.writer.log_of(WorkerSpec("worker:web:0", Command(("true",)), log=policy), generation)
        assert found is not None
        return found

    def texts(self) -> list[str]:
        """The lines of the file, without what stands before them."""
        try:
            text = self.path.read_text()
        except FileNotFoundError:  # also for a moment when it is rotated
            return []
        return [line.partition(" | ")[2] for line in text.splitlines()]

    def rotated(self, pattern: str = "web.log.*") -> list[Path]:
        return sorted(self.path.parent.glob(pattern))


AT = 1_790_000_000_000
"""When the output was read."""


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    made = Logs(tmp_path / "logs")
    yield made
    assert made.writer.close(5.0)


Writes = Callable[[int, bytes], int]


def on_write(monkeypatch: pytest.MonkeyPatch, act: Callable[[Writes, int, bytes], int]) -> None:
    """Have the writes of log files done by this."""
    real = os.write

    class Disk:
        def __getattr__(self, name: str) -> object:
            return getattr(os, name)

        @staticmethod
        def write(descriptor: int, data: bytes) -> int:
            return act(real, descriptor, data)

    monkeypatch.setattr(log_file, "os", Disk())


def test_a_line_is_written_when_its_end_arrives_and_the_last_one_at_the_end(logs: Logs) -> None:
    log = logs.log()
    log.take("out", b"one\ntw", AT)
    log.take("err", b"oh\n", AT)
    log.take("out", b"o\nthree", AT)
    assert eventually(lambda: logs.texts() == ["one", "oh", "two"])
    log.finish(AT)
    assert eventually(lambda: logs.texts()[-1] == "three")


def test_a_file_of_a_former_supervisor_is_continued(logs: Logs) -> None:
    logs.path.parent.mkdir()
    logs.path.write_text("T w 1 out | before\n")
    logs.log(generation=2).take("out", b"after\n", AT)
    assert eventually(lambda: logs.texts() == ["before", "after"])


def test_an_endless_line_is_cut(logs: Logs) -> None:
    log = logs.log()
    for _ in range(3):
        log.take("out", b"x" * (LONGEST_LINE // 2), AT)
    assert eventually(lambda: list(map(len, logs.texts())) == [LONGEST_LINE])


def test_a_full_file_is_rotated_and_compressed_and_only_some_are_kept(logs: Logs) -> None:
    log = logs.log(max_mb=0.001, keep=2)
    for number in range(100):
        log.take("out", b"%04d %s\n" % (number, b"x" * 100), AT)
        latest = f"{number:04}"
        # The file is empty for a moment when it is rotated.
        assert eventually(lambda: "".join(logs.texts()[-1:]).startswith(latest))  # noqa: B023
    assert logs.path.stat().st_size <= 1000
    assert eventually(lambda: [path.suffix for path in logs.rotated()] == [".gz", ".gz"])
    kept = b"".join(
        [*(gzip.decompress(path.read_bytes()) for path in logs.rotated()), logs.path.read_bytes()]
    )
    numbers = [int(line.partition(b" | ")[2][:4]) for line in kept.splitlines()]
    assert numbers == list(range(100 - len(numbers), 100))


def test_without_rotated_files_to_keep_the_file_begins_anew(logs: Logs) -> None:
    log = logs.log(max_mb=0.001, keep=0, compress=False)
    for number in range(20):
        log.take("out", b"%04d %s\n" % (number, b"x" * 100), AT)
    assert eventually(lambda: logs.texts()[-1:] and logs.texts()[-1].startswith("0019"))
    assert logs.rotated() == []


def test_what_a_killed_supervisor_did_not_compress_is_compressed(logs: Logs) -> None:
    logs.path.parent.mkdir()
    left = logs.path.parent / "web.log.20261118-095134-123"
    left.write_text("T w 1 out | before\n")
    (logs.path.parent / "web.log.20261118-095134-123.gz.part").write_bytes(b"half")
    logs.log().take("out", b"now\n", AT)
    assert eventually(lambda: [path.name for path in logs.rotated()] == [f"{left.name}.gz"])
    assert gzip.decompress(logs.rotated()[0].read_bytes()) == b"T w 1 out | before\n"


def test_a_renamed_file_is_written_on_until_the_files_are_opened_again(logs: Logs) -> None:
    log = logs.log()
    log.take("out", b"one\n", AT)
    assert eventually(lambda: logs.texts() == ["one"])
    logs.path.rename(old := logs.path.with_suffix(".1"))
    log.take("out", b"two\n", AT)
    assert eventually(lambda: old.read_text().count("\n") == 2)
    logs.writer.reopen()
    log.take("out", b"three\n", AT)
    assert eventually(lambda: logs.texts() == ["three"])


def test_the_log_file_of_a_removed_worker_is_closed(logs: Logs) -> None:
    logs.log().take("out", b"one\n", AT)
    assert eventually(lambda: logs.texts() == ["one"])
    logs.writer.forget("worker:web:0")
    assert eventually(lambda: str(logs.path) not in _open_files())


def _open_files() -> set[str]:
    found = set()
    for each in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{each}"))
        except OSError:
            continue
    return found


# ── disks that fail ──────────────────────────────────────────────────────────────────────


def test_a_full_disk_is_announced_and_what_waited_is_written_when_there_is_room(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "RETRY_S", 0.01)
    is_full = threading.Event()
    is_full.set()

    def write(real: Writes, descriptor: int, data: bytes) -> int:
        if is_full.is_set():
            real(descriptor, data[:5])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    log = logs.log()
    log.take("out", b"one\n", AT)
    assert eventually(lambda: logs.texts() == ["one"])
    on_write(monkeypatch, write)
    log.take("out", b"two\n", AT)
    assert eventually(lambda: logs.news)
    assert logs.news == [LogInterrupted(str(logs.path), "No space left on device", ("worker:web:0",))]
    is_full.clear()
    assert eventually(lambda: logs.news[-1] == LogResumed(str(logs.path), 0))
    assert logs.texts()[-1] == "two"


def test_lines_that_find_no_room_in_memory_are_counted_where_they_are_missing(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "MOST_WAITING", 10)
    monkeypatch.setattr(log_writer, "STUCK_S", 0.0)
    hangs, entered = threading.Event(), threading.Event()

    def write(real: Writes, descriptor: int, data: bytes) -> int:
        entered.set()
        assert hangs.wait(20.0)
        return real(descriptor, data)

    on_write(monkeypatch, write)
    log = logs.log()
    log.take("out", b"first\n", AT)
    assert entered.wait(20.0)
    for number in range(5):
        log.take("out", b"line %d\n" % number, AT)
    assert not log.is_full  # the worker does not wait for a disk that hangs
    assert logs.news == [LogInterrupted(str(logs.path), "the disk does not answer", ("worker:web:0",))]
    hangs.set()
    assert eventually(lambda: logs.news[-1] == LogResumed(str(logs.path), 4))
    log.take("out", b"last\n", AT)
    assert eventually(lambda: logs.texts()[-1:] == ["last"])
    assert logs.texts() == ["first", "line 0", "4 lines were dropped: the disk does not answer", "last"]


def test_a_worker_that_writes_faster_than_a_disk_that_works_waits_and_loses_nothing(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "MOST_WAITING", 10)
    hangs, entered = threading.Event(), threading.Event()

    def write(real: Writes, descriptor: int, data: bytes) -> int:
        entered.set()
        assert hangs.wait(20.0)
        return real(descriptor, data)

    on_write(monkeypatch, write)
    log = logs.log()
    monkeypatch.setattr(log_writer, "STUCK_S", 1000.0)
    log.take("out", b"0123456789\n", AT)
    assert entered.wait(20.0)
    assert log.is_full
    log.take("out", b"the last\n", AT)  # what a process leaves at its end is read at once
    hangs.set()
    assert eventually(lambda: not log.is_full)
    assert eventually(lambda: logs.texts() == ["0123456789", "the last"])
    assert logs.news == []


# ── files of others ──────────────────────────────────────────────────────────────────────


def test_a_symbolic_link_is_not_written_to(logs: Logs, tmp_path: Path) -> None:
    logs.path.parent.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("")
    logs.path.symlink_to(victim)
    logs.log().take("out", b"one\n", AT)
    assert eventually(lambda: logs.news)
    assert isinstance(logs.news[0], LogInterrupted)
    assert "is a symbolic link" in logs.news[0].reason
    assert victim.read_text() == ""


@pytest.mark.parametrize("kind", ["hard link", "pipe", "folder", "symbolic link"])
def test_what_is_not_a_file_of_ours_is_refused_before_it_is_needed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "web.log"
    match kind:
        case "hard link":
            (tmp_path / "other").write_text("")
            os.link(tmp_path / "other", path)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to(tmp_path / "other")
    with pytest.raises(LogFileError, match=kind if "link" in kind else "not a regular file"):
        check(str(path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_text("")
    os.chown(path, 65534, 65534)
    with pytest.raises(LogFileError, match="belongs to another user"):
        check(str(path))


def test_a_folder_in_which_every_user_can_rename_files_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(LogFileError, match="writable by every user"):
        check(str(tmp_path / "web.log"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize(
    ("owner", "mode", "others"),
    [(0, 0o755, False), (0, 0o777, False), (0, 0o775, True), (65534, 0o755, True), (65534, 0o777, True)],
)
def test_what_is_in_a_folder_of_another_user_may_be_that_users_work(
    tmp_path: Path, owner: int, mode: int, others: bool
) -> None:
    """That every user may write to a folder of root is a mistake of root."""
    folder = tmp_path / "logs"
    folder.mkdir()
    folder.chmod(mode)
    os.chown(folder, owner, -1)
    assert may_be_of_others(str(folder / "web.log")) == others


def test_a_check_creates_nothing(tmp_path: Path) -> None:
    check(str(tmp_path / "logs" / "web.log"))
    assert list(tmp_path.iterdir()) == []


def test_the_file_has_the_permissions_of_its_policy(logs: Logs) -> None:
    logs.log(mode="0604").take("out", b"one\n", AT)
    assert eventually(logs.path.exists)
    assert eventually(lambda: logs.path.stat().st_mode & 0o777 == 0o604)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_no_file_is_created_behind_a_link_of_another_user(logs: Logs, tmp_path: Path) -> None:
    """The owner of a folder on the path could have root's supervisor write anywhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = tmp_path / "logs"
    link.symlink_to(elsewhere)
    os.lchown(link, 65534, 65534)
    with pytest.raises(LogFileError, match="symbolic link of another user \\(uid 65534\\) is on its path"):
        check(str(link / "web.log"))
    logs.log().take("out", b"text\n", AT)
    assert eventually(lambda: logs.news)
    assert list(elsewhere.iterdir()) == []


def test_an_own_link_to_the_folder_is_followed(logs: Logs, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "logs").symlink_to("./elsewhere")
    logs.log().take("out", b"text\n", AT)
    assert eventually(lambda: logs.texts() == ["text"])
    assert [each.name for each in elsewhere.iterdir()] == ["web.log"]
