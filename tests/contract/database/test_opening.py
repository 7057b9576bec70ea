"""F21: what is not a sound database is refused in one sentence, and left as it is."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contract.mounts import remount, small_file_system
from tests.contract.records import death, known

from rekindle.actors.errors import StoreDamagedError, StoreError, StoreUnavailableError
from rekindle.cli.supervise.store_upgrade import open_upgraded
from rekindle.persistence import open_past, open_queue, open_store


def make_database(path: Path) -> None:
    store = open_store(path)
    store.commit([death(n) for n in range(1, 400)])
    store.close()


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(8192))


def short_text(path: Path) -> None:
    path.write_text("hello\n")


def truncated(path: Path) -> None:
    make_database(path)
    os.truncate(path, path.stat().st_size // 2)


def truncated_within_the_header(path: Path) -> None:
    make_database(path)
    os.truncate(path, 80)


def overwritten_in_the_middle(path: Path) -> None:
    make_database(path)
    size = path.stat().st_size
    with path.open("r+b") as file:
        for offset in range(4096, size - 4096, 4096):
            file.seek(offset)
            file.write(b"\xff" * 200)


def emptied_beside_its_lock(path: Path) -> None:
    make_database(path)
    os.truncate(path, 0)


def empty_beside_a_log(path: Path) -> None:
    path.touch()
    Path(f"{path}-wal").write_bytes(b"x")


DAMAGES = [
    garbage,
    short_text,
    truncated,
    truncated_within_the_header,
    overwritten_in_the_middle,
    emptied_beside_its_lock,
    empty_beside_a_log,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_f21_a_damaged_file_is_refused_in_one_sentence_and_not_touched(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "rekindle.db"
    damage(path)
    before = path.read_bytes()
    with pytest.raises(StoreDamagedError) as refused:
        open_store(path)
    assert str(refused.value).startswith(f"the store {path} is damaged: ")
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before


def test_f21_a_damaged_store_is_not_owned_by_who_was_refused(tmp_path: Path) -> None:
    garbage(tmp_path / "rekindle.db")
    for _ in range(2):
        with pytest.raises(StoreDamagedError):
            open_store(tmp_path / "rekindle.db")


def test_a_log_without_its_database_is_not_played_into_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "rekindle.db-wal").write_bytes(b"x")
    with pytest.raises(StoreDamagedError, match=r"it is missing, but rekindle\.db-wal exists"):
        open_store(tmp_path / "rekindle.db")
    assert not (tmp_path / "rekindle.db").exists()


def test_an_empty_file_without_any_trace_of_use_is_a_fresh_start(tmp_path: Path) -> None:
    path = tmp_path / "rekindle.db"
    path.touch()
    make_database(path)
    assert path.stat().st_size > 0


def test_a_start_that_was_killed_while_creating_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "rekindle.db.new").write_bytes(b"half a database")
    (tmp_path / "rekindle.db.migrating").touch()
    (tmp_path / "rekindle.db.lock").write_text("1\n")
    make_database(tmp_path / "rekindle.db")
    assert not (tmp_path / "rekindle.db.new").exists()


def test_f21_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="is not a file"):
        open_store(tmp_path)


def test_f21_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailableError, match="Not a directory"):
        open_store(tmp_path / "file" / "rekindle.db")


def test_f21_a_read_only_file_system_is_refused_and_welcome_later(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "mount", "4m") as mount:
        make_database(mount / "rekindle.db")
        remount(mount, read_only=True)
        with pytest.raises(StoreUnavailableError):
            open_store(mount / "rekindle.db")
        with pytest.raises(StoreUnavailableError):
            open_store(mount / "other.db")
        remount(mount, read_only=False)
        store = open_store(mount / "rekindle.db")
        assert known(store).restart_count == 399
        store.close()


def test_a_new_store_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "state" / "rekindle.db"
    store = open_store(path)
    store.commit([death(1)])
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    store.close()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    make_database(tmp_path / "rekindle.db")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "rekindle.db.lock").unlink()
    (tmp_path / "rekindle.db.lock").symlink_to(victim)
    with pytest.raises(StoreUnavailableError):
        open_store(tmp_path / "rekindle.db")
    assert victim.read_text() == "precious"


def test_a_path_with_signs_that_mean_something_in_an_address_is_only_a_path(tmp_path: Path) -> None:
    path = tmp_path / "50% off? #1" / "rekindle.db"
    make_database(path)
    assert path.stat().st_size > 0


def test_the_same_file_by_path_and_by_address_is_the_same_store(tmp_path: Path) -> None:
    make_database(tmp_path / "rekindle.db")
    store = open_store(f"sqlite:///{tmp_path / 'rekindle.db'}")
    assert known(store).restart_count == 399
    store.close()


def test_the_database_syncs_every_commit_to_a_write_ahead_log(tmp_path: Path) -> None:
    store = open_store(tmp_path / "rekindle.db")
    with store._writer.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    store.close()


@pytest.mark.parametrize("where", ["mysql://host/db", "sqlite://", "://"])
def test_an_address_of_something_else_is_refused(where: str) -> None:
    with pytest.raises(StoreError):
        open_store(where)


def test_a_worker_without_the_address_is_told_how_to_add_jobs_and_its_token_is_not_shown() -> None:
    with pytest.raises(StoreError, match=r"go through its supervisor.*self\.enqueue") as refused:
        open_queue("rekindle-claims:///run/claims#0123abc")
    assert "0123abc" not in str(refused.value)


def test_a_missing_driver_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"needs psycopg.*pip install 'rekindle-supervisor\[postgres\]'"):
        open_store("postgresql://user:secret@localhost/db")


def test_an_unreachable_server_is_reported_without_the_password() -> None:
    with pytest.raises(StoreUnavailableError) as refused:
        open_store("postgresql://user:secret@127.0.0.1:1/db")
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://127.0.0.1:1/db?user=u&password=Zq7wX2kLm9&connect_timeout=1",
        "postgresql://u:Zq7wX2kLm9@127.0.0.1:1/db?sslpassword=Zq7wX2kLm9&connect_timeout=1",
        "postgresql://u:Zq7wX2kLm9@127.0.0.1:port/db",
        "postgresql://u:Zq7wX2kLm9@[::1/db",
        "mysql://u:Zq7wX2kLm9@127.0.0.1/db?password=Zq7wX2kLm9",
    ],
)
def test_no_error_of_a_store_shows_its_password(address: str) -> None:
    for opened in (open_store, open_past):
        with pytest.raises(StoreError) as raised:
            opened(address)
        assert "Zq7wX2kLm9" not in f"{raised.value!r} {raised.value} {raised.value.__cause__}"


def test_a_store_where_every_user_may_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(StoreError, match="every user may write"):
        open_store(folder / "rekindle.db")
    folder.chmod(0o1777)  # as /tmp: others cannot replace the file
    open_store(folder / "rekindle.db").close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_a_store_behind_the_link_of_another_user_is_refused(tmp_path: Path) -> None:
    """Root created a file where the link pointed."""
    link, target = tmp_path / "rekindle.db", tmp_path / "target.db"
    link.symlink_to(target)
    os.lchown(link, 65534, 65534)
    with pytest.raises(StoreError, match="symbolic link of another user"):
        open_store(link)
    assert not target.exists()


def test_an_upgraded_supervisor_waits_for_a_database_that_was_moved_away(tmp_path: Path) -> None:
    """It made a new one, which did not know what runs."""
    path = tmp_path / "state" / "rekindle.db"
    path.parent.mkdir()
    store = open_store(path)
    assert store.lock is not None
    lock = os.dup(store.lock)  # as it goes over an exec
    path.parent.rename(tmp_path / "moved")
    path.parent.mkdir()
    with pytest.raises(StoreUnavailableError, match="is missing"):
        open_upgraded(str(path), path.parent, lock=lock)
    assert list(path.parent.iterdir()) == []
    os.close(lock)
    store.close()


def test_an_upgraded_supervisor_does_not_search_its_database_for_damage(tmp_path: Path) -> None:
    """No worker is watched meanwhile, and a file of 300 MB takes a second."""
    path = tmp_path / "rekindle.db"
    make_database(path)
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), bytes([0, 0, 0, 9]), 36)  # pages that are not used: there are none
    with pytest.raises(StoreDamagedError, match=r"(?i)freelist"):
        open_store(path)
    lock = os.open(tmp_path / "rekindle.db.lock", os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    store = open_store(path, lock=lock)
    assert len(store.deaths(limit=1000)) == 399
    store.close()
