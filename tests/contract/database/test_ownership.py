"""F12: one supervisor a store."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text
from tests.contract.mounts import small_file_system
from tests.contract.processes import Opener
from tests.contract.records import death, known

from rekindle.actors import SpecError, System, WorkerSpec, command
from rekindle.actors.errors import StoreOwnedError, StoreUnavailableError
from rekindle.persistence import open_store
from rekindle.persistence.database import ownership
from rekindle.persistence.database.ownership import FileOwnership, ServerOwnership
from rekindle.persistence.store import SqlStore


def test_f12_a_second_owner_in_the_same_process_is_refused(sql_store: SqlStore, address: str) -> None:
    with pytest.raises(StoreOwnedError, match=f"in use by another supervisor.* pid {os.getpid()}"):
        open_store(address)
    sql_store.commit([death(1)])
    assert known(sql_store).restart_count == 1


def test_f12_a_second_owner_in_another_process_is_refused_with_the_pid_of_the_first(
    sql_store: SqlStore, address: str
) -> None:
    other = Opener(address)
    other.go()
    told = other.told()
    other.end()
    assert told.startswith("StoreOwnedError: the store ")
    assert f"pid {os.getpid()}" in told


def test_f12_an_owner_that_was_killed_leaves_the_store_free(address: str) -> None:
    other = Opener(address)
    other.go()
    assert other.told().startswith("open")
    with pytest.raises(StoreOwnedError, match=f"pid {other.process.pid}"):
        open_store(address)
    other.process.send_signal(signal.SIGKILL)
    other.process.communicate(timeout=10)
    reopened_within(address, seconds=10)


def reopened_within(address: str, seconds: float) -> None:
    """A server needs a moment to notice that a client is gone."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            open_store(address).close()
        except StoreOwnedError:
            assert time.monotonic() < deadline, "the lock of a dead process is still held"
        else:
            return


def test_a_closed_store_can_be_owned_again(sql_store: SqlStore, address: str) -> None:
    sql_store.close()
    reopened_within(address, seconds=10)


@contextmanager
def frozen_for_a_moment(backend: int) -> Iterator[None]:
    """A busy server: the process of this session does nothing until a moment after the block began."""
    os.kill(backend, signal.SIGSTOP)
    thread = threading.Timer(0.5, os.kill, (backend, signal.SIGCONT))
    try:
        yield
    finally:
        thread.start()


def test_a_store_that_was_just_closed_can_be_owned_before_the_server_has_noticed_it(
    postgres_url: str,
) -> None:
    """It was said to be in use by another supervisor: this one."""
    store = open_store(postgres_url)
    assert store.lock is not None
    with frozen_for_a_moment(store.lock):
        store.close()
    open_store(postgres_url).close()


def test_a_store_of_a_killed_owner_can_be_owned_before_the_server_has_noticed_it(postgres_url: str) -> None:
    other, admin = Opener(postgres_url), open_store(postgres_url, exclusive=False)
    other.go()
    assert other.told().startswith("open")
    with admin._reader.connect() as connection:
        owner = connection.execute(ownership._OWNER, {"space": ownership._LOCK_SPACE}).one()
    with frozen_for_a_moment(owner.pid):
        other.process.send_signal(signal.SIGKILL)
        other.process.communicate(timeout=10)
    open_store(postgres_url).close()
    admin.close()


def test_a_store_that_is_closed_while_a_commit_looks_at_its_lock_stays_free(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit took the lock again, and the next supervisor was told that this one uses the store."""
    store = open_store(address)
    kind: Any = type(store._ownership)
    claim = kind._claim

    def closed_meanwhile(self: Any) -> None:
        store.close()
        claim(self)

    with monkeypatch.context() as patched:
        patched.setattr(kind, "_claim", closed_meanwhile)
        lose_lock(store)
        with pytest.raises(StoreUnavailableError, match="closed"):
            store.commit([death(1)])
    open_store(address).close()


def lose_lock(store: SqlStore) -> None:
    """Remove the file of the lock, or end the session that holds it."""
    if isinstance(store._ownership, FileOwnership):
        Path(store._ownership._name).unlink()
    else:
        assert isinstance(store._ownership, ServerOwnership)
        assert store._ownership._session is not None
        store._ownership._session.invalidate()


def test_who_only_looks_needs_no_ownership(sql_store: SqlStore, address: str) -> None:
    sql_store.commit([death(1)])
    onlooker = open_store(address, exclusive=False)
    assert known(onlooker).restart_count == 1
    onlooker.close()


def test_two_names_of_one_file_meet_at_one_lock(tmp_path: Path) -> None:
    store = open_store(tmp_path / "rekindle.db")
    (tmp_path / "alias.db").symlink_to(tmp_path / "rekindle.db")
    with pytest.raises(StoreOwnedError):
        open_store(tmp_path / "alias.db")
    store.close()


def test_closing_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    open_store(tmp_path / "rekindle.db").close()
    before = sorted(os.listdir("/proc/self/fd"))
    store = open_store(tmp_path / "rekindle.db")
    store.commit([death(1)])
    store.deaths()
    store.close()
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_no_descriptor_is_handed_down_to_a_worker(address: str) -> None:
    before = inheritable_descriptors()
    store = open_store(address)
    store.commit([death(1)])
    assert inheritable_descriptors() == before
    store.close()


def inheritable_descriptors() -> set[int]:
    found = set()
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # the one that listed the directory
            if os.get_inheritable(descriptor):
                found.add(descriptor)
    return found


def test_f24_an_owner_whose_session_was_cut_takes_its_lock_again(postgres_url: str) -> None:
    store, admin = open_store(postgres_url), open_store(postgres_url, exclusive=False)
    store.commit([death(1)])
    cut_the_owner(admin._reader)
    store.commit([death(2)])
    assert known(store).restart_count == 2
    with pytest.raises(StoreOwnedError):
        open_store(postgres_url)
    store.close()


def test_f24_an_owner_that_was_overtaken_while_cut_off_writes_no_more(postgres_url: str) -> None:
    first, admin = open_store(postgres_url), open_store(postgres_url, exclusive=False)
    first.commit([death(1)])
    cut_the_owner(admin._reader)
    second = open_store(postgres_url)
    with pytest.raises(StoreOwnedError, match=f"pid {os.getpid()}"):
        first.commit([death(2)])
    assert known(second).restart_count == 1
    second.close()
    first.commit([death(2)])
    assert known(first).restart_count == 2
    first.close()


def test_f24_an_owner_whose_server_has_not_noticed_the_cut_is_not_overtaken_by_itself(
    postgres_url: str,
) -> None:
    store = open_store(postgres_url)
    line = half_cut(store)
    with pytest.raises(StoreUnavailableError, match="still held our former session"):
        store.commit([death(1)])
    deadline = time.monotonic() + 20
    while known(store).restart_count == 0:
        assert time.monotonic() < deadline
        with suppress(StoreUnavailableError):  # the server takes a moment to end a session
            store.commit([death(1)])
    os.close(line)
    store.close()


def half_cut(store: SqlStore) -> int:
    """The owner's line is dead at its own end; at the server's it is open while this descriptor is."""
    ownership = store._ownership
    assert isinstance(ownership, ServerOwnership)
    assert ownership._session is not None
    driver = ownership._session.connection.driver_connection
    assert driver is not None
    server_end = os.dup(driver.fileno())
    dead, other = socket.socketpair()
    other.close()
    os.dup2(dead.fileno(), driver.fileno(), inheritable=False)
    dead.close()
    return server_end


def test_f24_a_session_that_did_not_get_the_lock_never_passes_for_one_that_has_it(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, admin = open_store(postgres_url), open_store(postgres_url, exclusive=False)
    cut_the_owner(admin._reader)
    second = open_store(postgres_url)
    # Asking for the lock fails, by a statement that is cancelled, say, and the session lives on.
    monkeypatch.setattr(ownership, "_TRY_LOCK", text("SELECT 1 / 0 * :space"))
    with pytest.raises(StoreUnavailableError):
        store.commit([death(1)])
    monkeypatch.undo()
    with pytest.raises(StoreOwnedError):
        store.commit([death(1)])
    second.close()
    store.close()


def cut_the_owner(engine: Engine) -> None:
    """End the session that holds the ownership lock, as a server or a network would."""
    cut = text(
        "SELECT pg_terminate_backend(lock.pid, 5000) FROM pg_locks AS lock JOIN pg_database AS here"
        " ON here.oid = lock.database AND here.datname = current_database()"
        " WHERE lock.locktype = 'advisory'"
    )
    with engine.connect() as connection:
        assert connection.scalars(cut).all() == [True]


def test_a_fork_of_the_host_does_not_keep_the_store_for_itself(tmp_path: Path) -> None:
    """A lock of a file belongs to all who share the descriptor, and goes with the last of them."""
    store = open_store(tmp_path / "rekindle.db")
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(ready, 1)  # until its parent lets go
        os._exit(0)
    try:
        store.close()
        open_store(tmp_path / "rekindle.db").close()
    finally:
        os.close(go)
        os.close(ready)
        os.waitpid(child, 0)


@pytest.mark.parametrize("reaped", [True, False], ids=["reaped", "a zombie"])
def test_a_lock_whose_owner_is_gone_is_waited_for(tmp_path: Path, reaped: bool) -> None:
    """Whom the owner was just starting has a copy of it, until it has become its program."""
    database = tmp_path / "rekindle.db"
    ready, go = os.pipe()
    owner = os.fork()
    if owner == 0:
        lock = FileOwnership(database)
        copied = [descriptor for descriptor in range(3, 64) if _leads_to(descriptor, ".lock")]
        subprocess.Popen(["sleep", "0.3"], pass_fds=copied)
        os.write(go, b"x")
        signal.pause()
        lock.release()
    try:
        os.read(ready, 1)
        os.kill(owner, signal.SIGKILL)
        os.waitid(os.P_PID, owner, os.WEXITED | (0 if reaped else os.WNOWAIT))
        FileOwnership(database).release()
    finally:
        os.close(ready)
        os.close(go)
        if not reaped:
            os.waitpid(owner, 0)


def _leads_to(descriptor: int, suffix: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").endswith(suffix)
    except OSError:
        return False


def test_f12_an_owner_whose_lock_was_removed_takes_it_again(tmp_path: Path) -> None:
    store = open_store(tmp_path / "rekindle.db")
    (tmp_path / "rekindle.db.lock").unlink()
    store.commit([death(1)])
    with pytest.raises(StoreOwnedError, match=f"pid {os.getpid()}"):
        open_store(tmp_path / "rekindle.db")
    store.close()


def test_f12_an_owner_that_was_overtaken_when_its_lock_was_removed_writes_no_more(tmp_path: Path) -> None:
    store = open_store(tmp_path / "rekindle.db")
    (tmp_path / "rekindle.db.lock").unlink()
    other = open_store(tmp_path / "rekindle.db")
    with pytest.raises(StoreOwnedError):
        store.commit([death(1)])
    other.commit([death(1)])
    other.close()
    store.commit([death(2)])
    assert known(store).restart_count == 2
    store.close()


def test_f12_a_fork_does_not_write_to_its_parent_s_store(tmp_path: Path) -> None:
    store = open_store(tmp_path / "rekindle.db")
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(StoreOwnedError):
                store.commit([death(1)])
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    store.close()


def test_f20_a_full_disk_does_not_prevent_ownership(tmp_path: Path) -> None:
    """The pid could not be written, and the lock stayed taken without an owner."""
    with small_file_system(tmp_path / "mount", "1m") as mount:
        database = mount / "rekindle.db"
        open_store(database).close()
        (mount / "rekindle.db.lock").unlink()
        with suppress(OSError), (mount / "ballast").open("wb", buffering=0) as ballast:
            while True:
                ballast.write(b"x" * 4096)
        FileOwnership(database).release()
        FileOwnership(database).release()


def test_a_fork_leaves_the_store_to_its_parent(tmp_path: Path) -> None:
    store = open_store(tmp_path / "rekindle.db")
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(StoreOwnedError):
        open_store(tmp_path / "rekindle.db")
    store.close()


def test_a_system_that_cannot_be_leaves_its_store_to_the_next(tmp_path: Path) -> None:
    """Its caller had no other hold of the store, which stayed locked by the process itself."""
    spec = WorkerSpec("worker:t:0", command("sleep", "1"))
    with pytest.raises(SpecError):
        System([spec, spec], store=open_store(tmp_path / "rekindle.db"))
    open_store(tmp_path / "rekindle.db").close()
