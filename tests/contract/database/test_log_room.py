"""The write-ahead log has its later length from the first commit on, and nothing is lost by that (PS-01)."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.mounts import small_file_system
from tests.contract.records import death, known

from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.jobs import NewJob
from rekindle.persistence import open_store
from rekindle.persistence.database.wal_preallocation import make_room
from rekindle.persistence.store_opener import LOG_LENGTH
from rekindle.worker.jobs.claims import Claimant, QueueUnavailableError
from rekindle.worker.jobs.sqlite import SqliteClaims

WRITE_ON_AND_ON = """
import sqlite3, sys
for number in range(1, 100_001):
    connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
    connection.execute("INSERT INTO rekindle_meta VALUES (?, ?)", (f"other {number}", "x" * 300))
    connection.close()
    print(number, flush=True)
"""
"""Opens the database again each time: the last process that closes it removes the log."""


KEEP_OPEN = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM rekindle_death").fetchone()
print("open", flush=True)
sys.stdin.read()
"""


def keeping_open(database: Path) -> subprocess.Popen[bytes]:
    """Another process that has the database open until its standard input ends."""
    command = [sys.executable, "-c", KEEP_OPEN, str(database)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"open\n"
    return other


def log_of(database: Path) -> Path:
    return database.with_name(database.name + "-wal")


def copied(database: Path, to: Path) -> Path:
    """What a crash at this moment would leave behind."""
    to.mkdir()
    shutil.copy(database, to)
    shutil.copy(log_of(database), to)
    return to / database.name


def test_commits_do_not_lengthen_the_log(tmp_path: Path) -> None:
    database = tmp_path / "rekindle.db"
    store = open_store(database)
    lengths = set()
    for number in range(1, 300):
        store.commit([death(number)])
        lengths.add(log_of(database).stat().st_size)
    (length,) = lengths
    assert LOG_LENGTH <= length < LOG_LENGTH + 8192
    store.close()
    assert not log_of(database).exists()


def test_ps_01_a_crash_leaves_every_commit_before_the_room(tmp_path: Path) -> None:
    database = tmp_path / "rekindle.db"
    store = open_store(database)
    for number in range(1, 21):
        store.commit([death(number)])
    after_a_crash = open_store(copied(database, tmp_path / "copy"))
    assert known(after_a_crash).restart_count == 20
    after_a_crash.commit([death(21)])
    after_a_crash.close()
    store.close()


def test_a_crash_before_the_first_frame_leaves_a_log_without_a_heading(tmp_path: Path) -> None:
    database = tmp_path / "rekindle.db"
    open_store(database).close()
    log_of(database).write_bytes(b"")
    make_room(log_of(database), LOG_LENGTH)
    assert set(log_of(database).read_bytes()) == {0}
    store = open_store(database)
    store.commit([death(1)])
    assert known(store).restart_count == 1
    store.close()


def test_a_concurrent_writer_loses_nothing(tmp_path: Path) -> None:
    database = tmp_path / "rekindle.db"
    open_store(database).close()
    command = [sys.executable, "-c", WRITE_ON_AND_ON, str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        for number in range(1, 21):
            store = open_store(database, busy_timeout_ms=30_000)
            store.commit([death(number)])
            store.close()
        other.kill()
        told = [int(line) for line in other.stdout.read().split()]
    with sqlite3.connect(database) as rows:
        found = rows.execute("SELECT count(*) FROM rekindle_meta WHERE key LIKE 'other %'").fetchone()
        sound = rows.execute("PRAGMA integrity_check").fetchone()
    rows.close()
    assert found[0] in (told[-1], told[-1] + 1)
    assert sound == ("ok",)


def test_a_reader_makes_no_room(tmp_path: Path) -> None:
    database = tmp_path / "rekindle.db"
    store = open_store(database, exclusive=False)
    store.commit([death(1)])
    assert log_of(database).stat().st_size < LOG_LENGTH // 10
    store.close()


def test_f20_a_disk_with_little_space_keeps_it(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "mount", "8m") as mount:
        store = open_store(mount / "rekindle.db")
        store.commit([death(1)])
        assert log_of(mount / "rekindle.db").stat().st_size < LOG_LENGTH // 10
        store.close()


def test_room_that_cannot_be_had_is_given_back(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"frames")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        make_room(log, LOG_LENGTH)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert log.read_bytes() == b"frames"


def test_a_log_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    make_room(tmp_path / "none", LOG_LENGTH)
    assert not (tmp_path / "none").exists()


def without_log(database: Path, to: Path) -> Path:
    """What a crash leaves behind once the log was removed."""
    to.mkdir()
    shutil.copy(database, to)
    return to / database.name


def test_records_written_after_the_log_was_removed_survive_a_crash(tmp_path: Path) -> None:
    """SQLite goes on with it, and every commit would be gone with the process."""
    database = tmp_path / "rekindle.db"
    store = open_store(database)
    (job,) = store.jobs.add("tag", [NewJob(payload="1")])
    store.commit([death(1)])
    log_of(database).unlink()
    store.commit([death(2)])
    (late,) = store.jobs.add("tag", [NewJob(payload="2")])
    after_a_crash = open_store(without_log(database, tmp_path / "copy"))
    assert known(after_a_crash).restart_count == 2
    assert [each.id for each in after_a_crash.jobs.find()] == [late, job]
    after_a_crash.close()
    store.close()
    again = open_store(database)
    assert known(again).restart_count == 2
    again.close()


@pytest.mark.parametrize("when", ["while others have it", "alone"])
def test_a_log_that_was_removed_while_in_use_is_not_created_again(tmp_path: Path, when: str) -> None:
    """The new one and the old one would share an index, and the database would be damaged by that."""
    database = tmp_path / "rekindle.db"
    store = open_store(database)
    store.commit([death(number) for number in range(1, 400)])
    others = [] if when == "alone" else [keeping_open(database)]
    log_of(database).unlink()
    for number in range(400, 406):
        with pytest.raises(StoreUnavailableError, match="its log was removed while processes use it"):
            store.deaths()
        with pytest.raises(QueueUnavailableError, match="its log was removed while processes use it"):
            SqliteClaims(str(database), Claimant("w", 1, "run")).mine()
        store.commit([death(number)])
    for other in others:
        other.communicate(timeout=30)
    store.close()
    with closing(sqlite3.connect(database)) as rows:
        assert rows.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    again = open_store(database)
    assert known(again).restart_count == 405
    again.close()


def test_an_index_that_crashes_left_behind_without_its_log_locks_no_process_out(tmp_path: Path) -> None:
    database = tmp_path / "rekindle.db"
    open_store(database).close()
    other = keeping_open(database)
    log_of(database).unlink()
    with pytest.raises(StoreUnavailableError, match="its log was removed"):
        open_store(database)
    other.kill()
    other.communicate(timeout=30)
    assert database.with_name(database.name + "-shm").exists()
    store = open_store(database)
    store.commit([death(1)])
    assert known(store).restart_count == 1
    store.close()
